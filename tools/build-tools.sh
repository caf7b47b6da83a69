#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Cross-build the part of Xen's tools that dom0 needs, redoing only what
# changed, and install it.
#
#   build-tools.sh PRISTINE TREE SYSROOT OUT [plain]
#
# PRISTINE is the unpacked source; TREE the copy of it that is built; SYSROOT
# holds unpacked development packages for arm64; OUT becomes dom0's root.
# plain: TREE is built as it is.
set -eu
cd "$(dirname "$0")/.."
[ $# -eq 4 ] || [ "$#-${5-}" = 5-plain ] || { sed -n '3,10p' "$0" >&2; exit 2; }
pristine=$1 tree=$2 sysroot=$(realpath "$3") out=$(realpath -m "$4")
: "${PYTHON:=/usr/bin/python3}" "${CROSS_COMPILE:=aarch64-linux-gnu-}"
log=$(realpath -m "$out/../tools-build.log")
# In the order in which they need each other.  xenstore's place has changed with
# Xen's versions.
parts='include libs xenstore xenstored console xl helpers'

# shellcheck disable=SC2086     # one word, or none
PYTHON="$PYTHON" tools/prepare-tree.sh "$pristine" "$tree" ${5-}

# Nothing of the build machine's own libraries.
export PKG_CONFIG_LIBDIR="$sysroot/usr/lib/aarch64-linux-gnu/pkgconfig"
export PKG_CONFIG_SYSROOT_DIR="$sysroot"
CC="${CROSS_COMPILE}gcc --sysroot=$sysroot"
unset MAKEFLAGS MFLAGS MAKELEVEL

say_why() {
    echo "build-tools: $1 failed, from $log:" >&2
    grep -n -A5 -E 'rror[: ]|warning:' "$log" | tail -40 >&2
    exit 1
}

configure() {
    (
        cd "$tree"
        ln -sf /usr/share/misc/config.guess /usr/share/misc/config.sub .
        autoconf -f
        (cd tools && autoconf -f && autoheader)
        ./configure --build="$(gcc -dumpmachine)" --host=aarch64-linux-gnu \
            CC="$CC" PYTHON="$PYTHON" \
            --prefix=/usr --sysconfdir=/etc --localstatedir=/var \
            --disable-docs --disable-stubdom --disable-ocamltools \
            --disable-golang --disable-qemu-traditional --disable-rombios \
            --disable-seabios --disable-ovmf --disable-ipxe --disable-pvshim \
            --disable-xsmpolicy --disable-monitors --disable-systemd \
            --with-xenstored=xenstored --with-system-qemu=/bin/false
    ) >> "$log" 2>&1 || say_why configure
}

toolsmake() {
    [ -d "$tree/tools/$1" ] || return 0
    make -s -C "$tree/tools/$1" XEN_TARGET_ARCH=arm64 CC="$CC" \
        CROSS_COMPILE="$CROSS_COMPILE" "$2" -j"$(nproc)" DESTDIR="$out" \
        >> "$log" 2>&1 || say_why "'make $2' in tools/$1"
}

: > "$log"
stamp=$( (echo "$CC"; cat "$0" "$tree/configure.ac" "$tree/tools/configure.ac") | cksum)
if [ "$(cat "$tree/.tools-configured" 2>/dev/null)" != "$stamp" ]; then
    configure
    echo "$stamp" > "$tree/.tools-configured"
fi

for p in $parts; do
    toolsmake "$p" all
done

# Installed only when something differs: the images depend on the stamp.
built=$(find "$tree/tools" \( -name '*.so.*' -o -perm -u+x \) -type f \
        -newer "$out/.installed" 2>/dev/null | head -1 || :)
if [ ! -e "$out/.installed" ] || [ -n "$built" ]; then
    for p in $parts; do
        [ "$p" = include ] || toolsmake "$p" install
    done
    touch "$out/.installed"
fi
echo "build-tools: $out"
