# SPDX-License-Identifier: GPL-2.0-only
# A guest of xl's with the PCI host bridge, as lib.sh.  Its configuration is
# $PVIOMMU_GUEST/pci.cfg with lines changed; its initramfs ends in a shell on the
# console, with the prompt 'guest# '.

NAME=pviommu
CFG=$TMP/$NAME.cfg
LOG=/var/log/xen/console/guest-$NAME.log
asked=0
# The driver keeps the parts of an SMMU's stream table that it once needed: 16 KB
# for a bus, which a hostile guest brings to all 256 of a bridge.
KEPT_MB=5

# config LINE...: pci.cfg with these lines in place of those of the same key; a
# line 'key =' only takes that one away
config() {
    cp "$PVIOMMU_GUEST/pci.cfg" "$CFG" || die "no pci.cfg in $PVIOMMU_GUEST"
    for line in "name = \"$NAME\"" "$@"; do
        key=${line%% *}
        sed -i "/^$key *=/d" "$CFG"
        [ "$line" = "$key =" ] || echo "$line" >> "$CFG"
    done
}

domid() { xl domid $NAME 2>/dev/null; }
gone() { ! domid > /dev/null; }

create() {
    gone || { xl destroy $NAME; wait_for "an old $NAME stays" gone; }
    free=$(xl info free_memory)
    rm -f $LOG
    trap 'xl destroy $NAME 2>/dev/null' EXIT
    xl create "$CFG" || die "xl create: status $?"
    id=$(domid) || die "$NAME is gone after xl create"
}

destroy() {
    # shellcheck disable=SC2034  # of wait_for
    WAIT_SECONDS=20
    xl destroy $NAME || die "xl destroy: status $?"
    trap - EXIT
    wait_for "$NAME stays" gone
    wait_for "memory of $NAME is not free again, $free MB were" all_free
    smmus_well
    ! xl iommu-info | grep -q "($NAME\|domain $id)" || die "domain $id is left in the driver"
}
all_free() { [ "$(xl info free_memory)" -ge $((free - KEPT_MB)) ]; }

console_has() { tr -d '\r\000' < $LOG 2>/dev/null | grep -Eq "$1"; }

# The tty's other end is xenconsoled, which writes what the guest prints to LOG.
shell() {
    tty=$(xenstore-read "/local/domain/$id/console/tty")
    wait_for "no prompt of $NAME" console_has 'guest# '
    ask true
}

# ask COMMAND: run it in the guest; its output is in $TMP/answer
ask() {
    asked=$((asked + 1))
    printf 'echo "<<%s"; (%s); echo "@@%s":$?\n' "$asked" "$1" "$asked" > "$tty"
    wait_for "$NAME does not answer: $1" console_has "^@@$asked:[0-9]+"
    tr -d '\r\000' < $LOG |
        sed -n "/^<<$asked\$/,/^@@$asked:/{/^<</d;/^@@/d;p}" > "$TMP/answer"
    status=$(tr -d '\r\000' < $LOG | sed -n "s/^@@$asked:\([0-9]*\).*/\1/p")
    [ "$status" = 0 ]
}

# The same as data, by the guest
guest_data() {
    at=$((PVIOMMU_AT_MB * 16)) n=$((DATA_MB * 16))
    ask "dd if=/dev/urandom of=/tmp/d bs=64k count=$n" ||
        die "guest: $(cat "$TMP/answer")"
    ask "d=\$(ls /dev/nvme*n1) && dd if=/tmp/d of=\$d bs=64k seek=$at conv=fsync,notrunc oflag=direct" ||
        die "guest: writing fails: $(cat "$TMP/answer")"
    ask "dd if=\$(ls /dev/nvme*n1) of=/tmp/b bs=64k skip=$at count=$n iflag=direct" ||
        die "guest: reading fails: $(cat "$TMP/answer")"
    ask 'cmp /tmp/d /tmp/b' ||
        die "guest: what was read is not what was written: $(cat "$TMP/answer")"
}
