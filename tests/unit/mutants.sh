#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# mutants.sh [NAME]: does test_property see it when the driver is wrong?
#
# Each line below is a file of passthrough/, a name, and an edit for sed that
# breaks a copy of the driver.  The test has to fail with each of them.

cd "$(dirname "$0")" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -R ../../passthrough "$work/driver"
build() {
    make -s DRIVER="$work/driver" O="$work/o" "$work/o/asan/test_property"
}
build || exit 1

passed=0 failed=0
while read -r file name edit; do
    case $file in ''|'#'*) continue;; esac
    [ -z "$1" ] || [ "$1" = "$name" ] || continue
    cp "../../passthrough/$file" "$work/orig"
    sed "$edit" "$work/orig" >"$work/driver/$file"
    if cmp -s "$work/orig" "$work/driver/$file"; then
        echo "FAILED  $name: the edit changes nothing"
        failed=$((failed + 1))
        continue
    fi
    if ! build; then
        echo "FAILED  $name: does not build"
        failed=$((failed + 1))
    elif SHRINK=${SHRINK:-5} OPERATIONS=${OPERATIONS:-300000} \
            "$work/o/asan/test_property" \
            >"$work/log" 2>&1; then
        echo "FAILED  $name: not found"
        failed=$((failed + 1))
    else
        echo "ok      $name: $(grep -m1 '^SEED=' "$work/log" ||
                               grep -m1 'FAILED' "$work/log")"
        passed=$((passed + 1))
    fi
    cp "$work/orig" "$work/driver/$file"
done <<'LIST'
flushq.c    release-before-sync     s/while ( fq->head != fq->synced )/while ( fq->head != fq->tail )/
flushq.c    leaf-only-for-tables    s/!e->table, entry_level(e))/true, entry_level(e))/
flushq.c    revived-stay-counted    /An entry that waits for its release only/,/fq->pages -= nr/s/fq->pages -= nr/(void)0/
s2pt.c      first-bit-lost          s/first && !i ? S2_SW_FIRST/false ? S2_SW_FIRST/
s2pt.c      wrong-slot              s/s2_make_pending(p, slot)/s2_make_pending(p, slot ^ 1)/
s2pt.c      revived-reference       s/if ( !(new & S2_SW_NOREF) )/if ( false )/
s2pt.c      revived-other-rights    s/!s2_same_leaf(old, new)/((old ^ new) \& S2_ADDR_MASK)/
s2pt.c      splits-at-the-end       s/splits = inside_mapping(&w, next);/(void)0;/
s2pt.c      table-not-told          s/c->table = true;//
s2pt.c      recent-not-forgotten    s/pt->recent = NULL;/(void)0;/
flushq.c    early-not-landed        s/fq->early_on \&\& flight_landed(&fq->early) )/fq->early_on \&\& (flight_landed(\&fq->early) || true) )/
flushq.c    early-is-all            s/fq->early_on \&\& fq->early.to == fq->tail/fq->early_on/
s2pt.c      put-page-missing        s/put_page(pg + i);/if ( i != 1 ) put_page(pg + i);/
foreign.c   revokes-the-first       s/!rc \&\& i <= r->mfn/!rc \&\& i <= 1/
foreign.c   rest-is-no-mapping      s/s2pt_begin(&ctx->pt, iova + PAGE_SIZE);/(void)0;/
flushq.c    void-entry-flushed-not  s/!e->pages \&\& !e->table;/!e->pages;/
p2m.c       registers-stay          s/table || is_mmio(t)/table/
foreign.c   pending-not-waited-for  s/\*found = true;/(void)0;/
p2m.c       removal-not-waited-for  s/pd->p2m_wait = true;/pd->p2m_wait = false;/
p2m.c       insert-over-pending     s/if ( overlap )/if ( false \&\& overlap )/
p2m.c       change-not-flushed      s/else if ( flush_now(pd, start, last, false) )/else if ( false )/
p2m.c       failed-not-pinned       s/pin(mfn, 0, 1UL << order);/(void)0;/
context.c   vmid-dirty              s/rc = smmu_tlbi_vmid(&b, att->vmid);/rc = 0;/
context.c   vmid-leak               s/smmu_vmid_free(smmu, att->vmid);/(void)0;/
domain.c    strict-does-not-drain   s/rc = pvi_fq_flush(pd, PVI_CAUSE_SWITCH);/rc = 0;/
endpoint.c  shared-stream-moves     s/if ( ctx \&\& s->attached > !!old/if ( ctx \&\& s->attached > 99/
bridge.c    bridge-keeps-vmid       s/if ( old \&\& !rc )/if ( false )/
viommu/request.c foreign-record-leak s/for ( i = max(n, 0L); run->foreign/for ( i = nr; run->foreign/
viommu/request.c undo-leaves-one    s/req->cursor = req->start;/req->cursor = req->start + PAGE_SIZE;/
viommu/request.c map-over-pending   s/if ( rc == -EAGAIN )/if ( rc == -EAGAIN \&\& (rc = -EBUSY) == 0 )/
viommu/request.c references-of-1g   s/if ( !huge_drop(req, budget) )/if ( false )/
viommu/request.c read-only-ignored  s/run.prot \& prot_mask,/run.prot,/
LIST
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
