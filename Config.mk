# SPDX-License-Identifier: GPL-2.0-only
# What the project is built from and with.

# The pinned hypervisor: Debian's source package.
XEN_DEB_VERSION := 4.17.5+72-g01140da4e8-1
# dom0: unmodified packages for arm64, unpacked, never installed.
DOM0_PACKAGES := linux-image-arm64 fio busybox-static
# What Xen's tools are built with, unpacked in the same way.
TOOLS_PACKAGES := libyajl-dev uuid-dev zlib1g-dev libfdt-dev libncurses-dev
# The bare-metal test guest: libfdt.a, and the standard's constants.
GUEST_PACKAGES := libfdt-dev linux-libc-dev libc6-dev

XEN_TARGET_ARCH := arm64
CROSS_COMPILE := aarch64-linux-gnu-
# Debian's own python3: it has the bindings of libfdt.
PYTHON := /usr/bin/python3
# A debug Xen (assertions on); n for the build that users run.
XEN_DEBUG ?= y

# The driver's option in Xen's Kconfig (its directory: tools/integrate.py).
DRIVER_KCONFIG := ARM_PVIOMMU

# Packages of the build machine.
HOST_PACKAGES := ca-certificates dpkg-dev make gcc libc6-dev bison flex bc \
	python3 cpio xz-utils \
	autoconf autotools-dev acpica-tools pkg-config \
	gcc-aarch64-linux-gnu qemu-system-arm ipxe-qemu \
	device-tree-compiler libfdt-dev python3-libfdt libcmocka-dev \
	clang libclang-rt-dev llvm \
	cppcheck shellcheck pylint codespell clang-format \
	git quilt \
	spin golang-go valgrind libglib2.0-dev
