# SPDX-License-Identifier: GPL-2.0-only
include Config.mk

B := build
# The version without Debian's revision names the unpacked directory.
PRISTINE := $(B)/xen-src/xen-$(XEN_DEB_VERSION:-1=)
SETUP = $(PYTHON) tools/setup.py
export PYTHON CROSS_COMPILE
export XEN_IMAGE XEN_ARGS

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' Makefile | expand -t 16
	@echo 'Variables: XEN_IMAGE=FILE boots that hypervisor, with XEN_ARGS in addition;'
	@echo '           XEN_DEBUG=n builds a release'

.PHONY: all
all: xen tools dom0-image

#
# Set-up
#
.PHONY: setup
setup: ## install what is missing on this machine, fetch the sources
	@[ -x $(PYTHON) ] || { apt-get -q update && apt-get -qy install python3; }
	@$(SETUP) install $(HOST_PACKAGES)
	@$(SETUP) source xen=$(XEN_DEB_VERSION) $(B)/xen-src
	@$(SETUP) arm64 $(B)/arm64-root $(DOM0_PACKAGES)
	@$(SETUP) arm64 $(B)/arm64-dev $(TOOLS_PACKAGES)
	@$(SETUP) arm64 $(B)/arm64-guest $(GUEST_PACKAGES)

#
# Hypervisor
#
.PHONY: xen
xen: setup ## build Debian's Xen with the driver: build/xen.img
	@tools/build-xen.sh $(PRISTINE) $(B)/xen $(B)/xen.img $(DRIVER_KCONFIG) $(XEN_DEBUG)

# The same source with its own SMMUv3 driver, to compare with.
.PHONY: xen-stock
xen-stock: setup
	@tools/build-xen.sh $(PRISTINE) $(B)/xen-stock $(B)/xen-stock.img \
		ARM_SMMU_V3 $(XEN_DEBUG)

# The same with the driver, where a sync may be told to take longer.
.PHONY: xen-delay
xen-delay: setup
	@tools/build-xen.sh $(PRISTINE) $(B)/xen-delay $(B)/xen-delay.img \
		$(DRIVER_KCONFIG) y ARM_PVIOMMU_SYNC_DELAY

.PHONY: integrate
integrate: ## XEN_SRC=DIR: put driver and hooks into a Xen tree of yours
	@[ -n "$(XEN_SRC)" ] || { \
	  echo "integrate: say where: make integrate XEN_SRC=DIR" >&2; exit 1; }
	@$(PYTHON) tools/integrate.py "$(XEN_SRC)"

.PHONY: dist
dist: setup ## the driver as patches for the pinned Xen: build/dist/git for git am, build/dist/quilt for quilt
	@$(PYTHON) tools/dist/dist.py $(PRISTINE) $(B)/dist

.PHONY: guests
guests: setup ## build the bare-metal test guest: build/guests/guest.img
	@$(MAKE) -s --no-print-directory -C tests/guests O=$(CURDIR)/$(B)/guests \
		ROOT=$(CURDIR)/$(B)/arm64-guest \
		XEN_PUBLIC=$(CURDIR)/$(PRISTINE)/xen/include
	@$(MAKE) --no-print-directory -C tests/firmware O=$(CURDIR)/$(B)/guests

# XEN_IMAGE=FILE replaces the hypervisor that is built here.
HYPERVISOR := $(if $(XEN_IMAGE),,xen)
ifneq ($(XEN_IMAGE),)
$(if $(wildcard $(XEN_IMAGE)),,$(error XEN_IMAGE=$(XEN_IMAGE): no such file; \
  give the file xen/xen of a Xen built for arm64))
endif

#
# Xen's tools, for dom0
#
# After the hypervisor, whose tree they share.
.PHONY: tools
tools: setup $(HYPERVISOR) ## build Xen's tools for dom0: build/tools-root/
	@tools/build-tools.sh $(PRISTINE) $(B)/xen $(B)/arm64-dev $(B)/tools-root

#
# Test bed
#
DOM0 := $(B)/dom0

.PHONY: dom0-image
dom0-image: dom0-base tools ## make dom0's images: build/dom0/
	@$(MAKE) -s --no-print-directory $(DOM0)/xl.cpio

# What needs no tools of Xen's.
.PHONY: dom0-base
dom0-base: setup
	@$(MAKE) -s --no-print-directory $(DOM0)/initramfs.cpio

IMAGE_DEPS := tools/dom0_image.py Config.mk $(wildcard tests/e2e/dom0/*) \
	$(wildcard $(B)/arm64-root/.unpacked*)

$(DOM0)/initramfs.cpio: $(IMAGE_DEPS)
	@$(PYTHON) tools/dom0_image.py dom0 $(B)/arm64-root $(DOM0)

$(DOM0)/xl.cpio: $(IMAGE_DEPS) $(wildcard tests/e2e/guest/* \
		$(B)/arm64-dev/.unpacked* $(B)/tools-root/.installed)
	@$(PYTHON) tools/dom0_image.py xl $(B)/arm64-root $(DOM0) \
		$(B)/arm64-dev $(B)/tools-root

.PHONY: shell
shell: $(HYPERVISOR) dom0-image ## a prompt in dom0, with xl and guests to create; BRIDGE=guest: one gets the PCI bridge
	@$(PYTHON) tests/e2e/shell.py $(if $(filter guest,$(BRIDGE)),--bridge)

.PHONY: demo
demo: $(HYPERVISOR) dom0-base ## fio in dom0, strict and lazy: one table, build/results/demo.json
	@$(PYTHON) tests/e2e/demo.py

.PHONY: boots
boots: $(HYPERVISOR) dom0-base ## N=20: boots in a row, without a hang
	@$(PYTHON) tests/e2e/boots.py $(or $(N),20)

.PHONY: bench-xen
bench-xen: $(HYPERVISOR) guests ## instructions in Xen per request and per slice
	@$(PYTHON) tests/bench/xen_cost.py requests slices

.PHONY: bench-gate
bench-gate: $(HYPERVISOR) guests ## these against tests/bench/gate.json, as make test does; ACCEPT=1 takes new figures
	@$(PYTHON) tests/bench/gate.py $(if $(ACCEPT),--accept)

.PHONY: bench-native
bench-native: setup ## MAP and UNMAP on the host, against a balanced tree: build/results/native.json
	@$(PYTHON) tests/bench/native.py

.PHONY: bench-scaling
bench-scaling: $(HYPERVISOR) dom0-base ## the cost of a request by mappings and contexts, of an I/O by vCPUs and disks: build/results/scaling.json
	@$(PYTHON) tests/bench/scaling.py

.PHONY: bench-io
bench-io: $(HYPERVISOR) dom0-base ## SYNC, TLBI, kicks for each I/O, with Xen and without, by who confines the disk: build/results/io.json
	@$(PYTHON) tests/bench/per_io.py

.PHONY: bench
bench: xen xen-stock xen-delay dom0-image guests ## all benchmarks, within an hour: build/results/bench.json and plots; PART="xen io" for some
	@$(PYTHON) tests/bench/bench.py $(PART)

.PHONY: bench-delay
bench-delay: xen-delay dom0-base ## IOPS by how long a sync takes, strict and lazy: build/results/delay.json, delay.svg
	@$(PYTHON) tests/bench/sync_delay.py

.PHONY: bench-p2m
bench-p2m: xen xen-stock dom0-image ## SMMU commands of p2m changes, against Xen's own driver: build/results/p2m.json
	@$(PYTHON) tests/bench/p2m.py

.PHONY: lint
lint: setup ## static checks: style, cppcheck with MISRA, shell, Python, spelling
	@$(PYTHON) tools/lint.py

.PHONY: check
check: setup ## run the tests of the host
	@$(PYTHON) tests/run.py host

.PHONY: test
test: $(HYPERVISOR) xen-stock dom0-image guests ## run all tests, on the host and on real Xen in QEMU
	@$(PYTHON) tests/run.py all

.PHONY: osstest-standalone
osstest-standalone: $(HYPERVISOR) dom0-image guests ## osstest's jobs on a host in QEMU, and on broken ones: build/results/osstest.json
	@$(PYTHON) tests/osstest/standalone.py
	@$(PYTHON) tests/run.py osstest/t

.PHONY: osstest-dist
osstest-dist: setup guests ## what osstest's guests need: build/osstest/pviommu-guest.tar.gz
	@$(PYTHON) tests/osstest/dist.py

.PHONY: fuzz
fuzz: setup ## SECONDS=3600, T=ring: long runs of the fuzzers of tests/fuzz
	@$(MAKE) --no-print-directory -C tests/fuzz fuzz

.PHONY: mutants
mutants: setup ## break the driver in many ways: do the host's tests see each?
	@tests/unit/mutants.sh

.PHONY: bench-cmdq
bench-cmdq: setup ## command queue, 1 to 16 threads, against a locked one: build/results/cmdq.json
	@$(MAKE) --no-print-directory -C tests/unit -f ../bench/cmdq.mk
	@mkdir -p $(B)/results
	@$(B)/unit/opt/bench_cmdq $(B)/results/cmdq.json

.PHONY: soak
soak: $(HYPERVISOR) dom0-image guests ## tests that take long, 10 minutes each: hostile guests, disks that come and go, 20 lives under DMA, each patch of the series built, all of osstest's jobs
	@SOAK=600 SEED=$$(date +%s) $(PYTHON) tests/run.py e2e test_soak
	@HOSTILE="seconds=600 seed=$$(date +%s)" LIVES=20 \
		$(PYTHON) tests/run.py e2e test_guests.Guests.test_hostile
	@LIVES=20 $(PYTHON) tests/run.py e2e again_and_again
	@$(PYTHON) tests/e2e/boots.py 20
	@SOAK=600 $(PYTHON) tests/run.py dist builds
	@SOAK=600 $(PYTHON) tests/run.py gitlab
	@$(MAKE) --no-print-directory osstest-standalone

.PHONY: clean
clean: ## remove what was built (not what was fetched)
	rm -rf $(B)/xen $(B)/xen.img $(B)/xen-stock $(B)/xen-stock.img $(B)/tools-root $(B)/run $(B)/results $(B)/guests $(B)/osstest $(B)/dist $(DOM0)
