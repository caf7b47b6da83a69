/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Split virtqueues from the device's side (virtio 1.2, 2.7).
 *
 * The rings stay writable by the guest while we use them: each field is read
 * once, into Xen's memory, and only the copy is checked and used.
 *
 * Barriers, each with its partner in the guest's driver:
 *
 *         device (here)                    driver
 *  [A] read avail.idx                write ring entry, descriptors
 *      smp_rmb()                     wmb
 *      read ring entry, descriptors  write avail.idx
 *
 *  [B] write used entries            read used.idx
 *      smp_wmb()                     rmb
 *      write used.idx                read used entries
 *
 *  [C] write used.idx                write avail.used_event (or flags)
 *      smp_mb()                      mb
 *      read used_event (or flags)    read used.idx
 *
 *  [D] write used.avail_event        write avail.idx
 *      smp_mb()                      mb
 *      read avail.idx                read avail_event
 *
 * With [C] an interrupt that the driver waits for isn't left out, with [D] no
 * chain is left without a kick: one of both sides sees the other's store.
 */

#include <xen/domain_page.h>
#include <xen/lib.h>
#include <xen/mm.h>
#include <xen/nospec.h>
#include <xen/sched.h>
#include <xen/vmap.h>

#include <asm/io.h>
#include <asm/vgic.h>

#include "viommu.h"

#define VIOMMU_INT_VRING    1U

/* Descriptors of an indirect table copied at once: requests have 2 or 3. */
#define TABLE_WINDOW        16

/* ring[num] is used_event. */
struct vring_avail {
    uint16_t flags, idx;
    uint16_t ring[];
};

/* A uint16_t at ring[num] is avail_event. */
struct vring_used {
    uint16_t flags, idx;
    struct vring_used_elem ring[];
};

static struct vring_avail *q_avail(const struct viommu_queue *q)
{
    return q->avail.va;
}

static struct vring_used *q_used(const struct viommu_queue *q)
{
    return q->used.va;
}

static void area_unmap(struct viommu_map *m)
{
    unsigned int i;

    if ( m->va )
        vunmap((void *)((unsigned long)m->va & PAGE_MASK));
    for ( i = 0; i < m->nr_pages; i++ )
        put_page(m->pages[i]);

    memset(m, 0, sizeof(*m));
}

static int area_map(struct domain *d, struct viommu_map *m, uint64_t gpa,
                    unsigned int bytes)
{
    unsigned int offset = gpa & ~PAGE_MASK;
    unsigned int nr = PFN_UP(offset + bytes);
    mfn_t mfns[ARRAY_SIZE(m->pages)];
    void *va;

    ASSERT(!m->va && !m->nr_pages);

    if ( gpa + bytes - 1 < gpa || nr > ARRAY_SIZE(m->pages) )
        return -EINVAL;

    while ( m->nr_pages < nr )
    {
        struct pvi_run run;

        /* Page by page: they needn't be contiguous in machine memory. */
        if ( pvi_gpa_get(d, gfn_add(gaddr_to_gfn(gpa), m->nr_pages), 1, true,
                         &run) )
            goto bad;

        /*
         * A device's registers have side effects, and no reference.  Another
         * domain's page may be taken back while the ring is still mapped.
         */
        if ( run.noref || run.foreign )
        {
            pvi_gpa_put(&run, 0);
            goto bad;
        }

        mfns[m->nr_pages] = run.mfn;
        m->pages[m->nr_pages] = mfn_to_page(run.mfn);
        m->nr_pages++;
    }

    va = vmap(mfns, nr);
    if ( !va )
    {
        area_unmap(m);
        return -ENOMEM;
    }
    m->va = va + offset;

    return 0;

 bad:
    area_unmap(m);
    return -EINVAL;
}

int viommu_queue_enable(struct viommu *v, struct viommu_queue *q)
{
    struct domain *d = v->pd->d;
    unsigned int num = q->num;
    int rc;

    ASSERT(spin_is_locked(&v->pd->lock));
    ASSERT(!q->ready);

    if ( !num || num > VIOMMU_QUEUE_MAX || (num & (num - 1)) )
        return -EINVAL;

    /* Alignments and sizes: 2.7. */
    if ( (q->desc_gpa & 15) || (q->avail_gpa & 1) || (q->used_gpa & 3) )
        return -EINVAL;

    rc = area_map(d, &q->desc, q->desc_gpa, num * sizeof(struct vring_desc));
    if ( !rc )
        rc = area_map(d, &q->avail, q->avail_gpa,
                      sizeof(struct vring_avail) + (num + 1) * 2);
    if ( !rc )
        rc = area_map(d, &q->used, q->used_gpa,
                      sizeof(struct vring_used) +
                      num * sizeof(struct vring_used_elem) + 2);
    if ( rc )
    {
        viommu_queue_disable(q);
        return rc;
    }

    q->last_avail = q->used_idx = q->published = 0;
    /*
     * The used ring is ours, whatever the driver left there.  Flags are never
     * anything but 0: a driver without EVENT_IDX always kicks.
     */
    write_atomic(&q_used(q)->flags, 0);
    write_atomic(&q_used(q)->idx, 0);
    if ( viommu_has_feature(v, VIRTIO_F_EVENT_IDX) )
        write_atomic((uint16_t *)&q_used(q)->ring[num], 0);

    q->ready = true;

    return 0;
}

void viommu_queue_disable(struct viommu_queue *q)
{
    q->ready = false;
    area_unmap(&q->desc);
    area_unmap(&q->avail);
    area_unmap(&q->used);
    q->last_avail = q->used_idx = q->published = 0;
}

int viommu_queue_peek(struct viommu *v, struct viommu_queue *q)
{
    uint16_t idx;

    ASSERT(spin_is_locked(&v->pd->lock));

    if ( !q->ready )
        return 0;

    idx = read_atomic(&q_avail(q)->idx);

    /*
     * What the driver hasn't got back yet is at most one ring full, and it
     * can't take back what was taken: the second check follows from the first
     * unless idx went backwards.
     */
    if ( (uint16_t)(idx - q->published) > q->num ||
         (uint16_t)(idx - q->last_avail) > q->num )
        return -EBADMSG;

    return idx != q->last_avail;
}

/*
 * The page of a guest address.  Requests of one driver lie in a few pages, so
 * those of this slice are kept: a reference holds each where it is.  Pages of
 * other domains are not kept (@run is theirs): they may be taken back.
 */
static struct viommu_page *page_slot(struct viommu *v, gfn_t gfn)
{
    return &v->page[gfn_x(gfn) % ARRAY_SIZE(v->page)];
}

static bool page_is(const struct viommu_page *p, gfn_t gfn, bool write)
{
    return p->va && gfn_eq(p->gfn, gfn) && (p->write || !write);
}

static void *page_get(struct viommu *v, gfn_t gfn, bool write,
                      struct pvi_run *run)
{
    struct viommu_page *p = page_slot(v, gfn);

    run->nr = 0;
    if ( page_is(p, gfn, write) )
        return p->va;

    if ( pvi_gpa_get(v->pd->d, gfn, 1, write, run) )
    {
        run->nr = 0;
        return NULL;
    }

    /* A device's registers have side effects, and no reference. */
    if ( run->noref )
        return NULL;

    if ( run->foreign )
        return map_domain_page(run->mfn);

    if ( p->va )
    {
        unmap_domain_page(p->va);
        put_page(p->pg);
    }
    *p = (struct viommu_page){
        .gfn = gfn,
        .va = map_domain_page(run->mfn),
        .pg = mfn_to_page(run->mfn),
        .write = write,
    };

    return p->va;
}

void viommu_pages_put(struct viommu *v)
{
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(v->page); i++ )
        if ( v->page[i].va )
        {
            unmap_domain_page(v->page[i].va);
            put_page(v->page[i].pg);
            v->page[i].va = NULL;
        }
}

static int copy_pages(struct viommu *v, void *buf, uint64_t gpa,
                      unsigned int len, bool to_guest)
{
    if ( len && gpa + len - 1 < gpa )
        return -EFAULT;

    while ( len )
    {
        unsigned int offset = gpa & ~PAGE_MASK;
        unsigned int n = min(len, (unsigned int)PAGE_SIZE - offset);
        struct pvi_run run;
        void *va = page_get(v, gaddr_to_gfn(gpa), to_guest, &run);

        if ( !va )
            return -EFAULT;

        if ( to_guest )
            memcpy(va + offset, buf, n);
        else
            memcpy(buf, va + offset, n);
        if ( run.nr && run.foreign )
        {
            unmap_domain_page(va);
            pvi_gpa_put(&run, 0);
        }

        buf += n;
        gpa += n;
        len -= n;
    }

    return 0;
}

/* Copy to or from guest memory: mostly within a page that is known. */
static int guest_copy(struct viommu *v, void *buf, uint64_t gpa,
                      unsigned int len, bool to_guest)
{
    const struct viommu_page *p = page_slot(v, gaddr_to_gfn(gpa));
    unsigned int offset = gpa & ~PAGE_MASK;

    if ( !page_is(p, gaddr_to_gfn(gpa), to_guest) || len > PAGE_SIZE - offset )
        return copy_pages(v, buf, gpa, len, to_guest);

    if ( to_guest )
        memcpy(p->va + offset, buf, len);
    else
        memcpy(buf, p->va + offset, len);

    return 0;
}

int viommu_copy_from_guest(struct viommu *v, void *buf, uint64_t gpa,
                           unsigned int len)
{
    return guest_copy(v, buf, gpa, len, false);
}

/* Where a walk reads descriptors: the queue's table, or an indirect one. */
struct walk {
    struct viommu *v;
    const struct viommu_queue *q;
    bool indirect;
    uint64_t table;             /* of the indirect table */
    unsigned int entries;       /* in the table */
    unsigned int seen, limit;   /* buffers in total */
    uint64_t total;             /* bytes */
    unsigned int win_first, win_nr;
    struct vring_desc win[TABLE_WINDOW];
};

/* The only place that reads a descriptor; what it returns may be trusted. */
static bool walk_read(struct walk *w, unsigned int idx, struct vring_desc *desc)
{
    if ( idx >= w->entries )
        return false;
    idx = array_index_nospec(idx, w->entries);

    if ( !w->indirect )
    {
        const struct vring_desc *p = w->q->desc.va;

        p += idx;
        desc->addr = ACCESS_ONCE(p->addr);
        desc->len = ACCESS_ONCE(p->len);
        desc->flags = ACCESS_ONCE(p->flags);
        desc->next = ACCESS_ONCE(p->next);
        return true;
    }

    /* A look-up in the p2m costs more than a copy: fetch neighbours too. */
    if ( idx - w->win_first >= w->win_nr )
    {
        w->win_first = idx;
        w->win_nr = min(w->entries - idx, (unsigned int)TABLE_WINDOW);
        if ( guest_copy(w->v, w->win, w->table + idx * sizeof(*desc),
                        w->win_nr * sizeof(*desc), false) )
            return false;
    }
    *desc = w->win[idx - w->win_first];

    return true;
}

static bool walk_enter_table(struct walk *w, const struct vring_desc *desc)
{
    unsigned int entries = desc->len / sizeof(*desc);

    /* 2.7.5.3.1; WRITE is to be ignored on this descriptor (2.7.5.3.2). */
    if ( !viommu_has_feature(w->v, VIRTIO_F_INDIRECT_DESC) || w->indirect ||
         (desc->flags & VRING_DESC_F_NEXT) ||
         !entries || desc->len % sizeof(*desc) ||
         entries > VIOMMU_QUEUE_MAX ||
         desc->addr + desc->len - 1 < desc->addr )
        return false;

    w->indirect = true;
    w->table = desc->addr;
    w->entries = entries;
    w->win_nr = 0;
    /* Also the room in viommu_chain.in. */
    w->limit = min(w->seen + entries, (unsigned int)VIOMMU_QUEUE_MAX);

    return true;
}

/* Account for one buffer. */
static bool walk_add(struct walk *w, struct viommu_chain *c,
                     const struct vring_desc *desc)
{
    bool writable = desc->flags & VRING_DESC_F_WRITE;

    if ( !desc->len )
        return true;

    w->total += desc->len;
    if ( w->total > UINT32_MAX || desc->addr + desc->len - 1 < desc->addr )
        return false;

    if ( writable )
    {
        ASSERT(c->in_segs < ARRAY_SIZE(c->in));
        c->in[c->in_segs].gpa = desc->addr;
        c->in[c->in_segs].len = desc->len;
        c->in_segs++;
        c->in_len += desc->len;
    }
    else
    {
        unsigned int n = min(desc->len,
                             (uint32_t)(sizeof(c->out) - c->out_len));

        if ( guest_copy(w->v, c->out + c->out_len, desc->addr, n, false) )
            return false;
        c->out_len += n;
    }

    return true;
}

static bool chain_walk(struct viommu *v, const struct viommu_queue *q,
                       struct viommu_chain *c)
{
    struct walk w;
    unsigned int idx = c->head;
    bool writable = false;

    /* Not the window: it is long, and empty as long as win_nr is 0. */
    w.v = v;
    w.q = q;
    w.indirect = false;
    w.entries = w.limit = q->num;
    w.seen = w.win_first = w.win_nr = 0;
    w.total = 0;

    for ( ; ; )
    {
        struct vring_desc desc;

        /* Each descriptor costs, and may cost a look-up or two. */
        c->work += 2;

        /* More descriptors than the tables have: a loop. */
        if ( w.seen >= w.limit || !walk_read(&w, idx, &desc) )
            return false;

        if ( desc.flags & VRING_DESC_F_INDIRECT )
        {
            if ( !walk_enter_table(&w, &desc) )
                return false;
            idx = 0;
            continue;
        }
        w.seen++;

        /* All that is readable comes first (2.7.4.2). */
        if ( desc.flags & VRING_DESC_F_WRITE )
            writable = true;
        else if ( writable )
            return false;

        if ( !walk_add(&w, c, &desc) )
            return false;

        if ( !(desc.flags & VRING_DESC_F_NEXT) )
            return true;
        idx = desc.next;
    }
}

int viommu_queue_take(struct viommu *v, struct viommu_queue *q,
                      struct viommu_chain *c)
{
    int rc = viommu_queue_peek(v, q);
    uint16_t head;

    if ( rc <= 0 )
        return rc;

    /* [A] avail.idx before the entry and what it points to. */
    smp_rmb();

    head = ACCESS_ONCE(q_avail(q)->ring[q->last_avail & (q->num - 1)]);
    if ( head >= q->num )
        return -EBADMSG;
    q->last_avail++;

    c->head = head;
    c->out_len = c->in_len = c->in_segs = c->work = 0;
    if ( !chain_walk(v, q, c) )
        c->out_len = c->in_len = c->in_segs = 0;

    return 1;
}

int viommu_chain_write(struct viommu *v, const struct viommu_chain *c,
                       unsigned int offset, const void *buf, unsigned int len)
{
    unsigned int i;

    if ( offset > c->in_len || len > c->in_len - offset )
        return -ENOSPC;

    for ( i = 0; len && i < c->in_segs; i++ )
    {
        unsigned int n;
        int rc;

        if ( offset >= c->in[i].len )
        {
            offset -= c->in[i].len;
            continue;
        }

        n = min(len, c->in[i].len - offset);
        /* The cast is safe: with to_guest set the buffer is only read. */
        rc = guest_copy(v, (void *)buf, c->in[i].gpa + offset, n, true);
        if ( rc )
            return rc;

        buf += n;
        len -= n;
        offset = 0;
    }

    return 0;
}

void viommu_queue_put(struct viommu *v, struct viommu_queue *q, uint16_t head,
                      uint32_t written)
{
    struct vring_used_elem *elem;

    ASSERT(spin_is_locked(&v->pd->lock));

    /* The driver may have disabled the queue since the chain was taken. */
    if ( !q->ready || head >= q->num )
        return;

    elem = &q_used(q)->ring[q->used_idx & (q->num - 1)];
    ACCESS_ONCE(elem->id) = head;
    ACCESS_ONCE(elem->len) = written;
    q->used_idx++;
}

static bool wants_interrupt(const struct viommu *v,
                            const struct viommu_queue *q, uint16_t old)
{
    uint16_t event;

    if ( !viommu_has_feature(v, VIRTIO_F_EVENT_IDX) )
        return !(ACCESS_ONCE(q_avail(q)->flags) & VRING_AVAIL_F_NO_INTERRUPT);

    event = ACCESS_ONCE(q_avail(q)->ring[q->num]);

    /* Is entry number `event` among old .. used_idx - 1?  (2.7.7.2) */
    return (uint16_t)(q->used_idx - event - 1) < (uint16_t)(q->used_idx - old);
}

void viommu_queue_publish(struct viommu *v, struct viommu_queue *q)
{
    uint16_t old = q->published;

    ASSERT(spin_is_locked(&v->pd->lock));

    if ( !q->ready || q->used_idx == old )
        return;

    /* [B] Entries, and what was written to buffers, before the index. */
    smp_wmb();
    write_atomic(&q_used(q)->idx, q->used_idx);
    q->published = q->used_idx;

    /* [C] The index before the question whether the driver waits for it. */
    smp_mb();
    if ( !wants_interrupt(v, q, old) )
        return;

    v->interrupt_status |= VIOMMU_INT_VRING;
    vgic_inject_irq(v->pd->d, NULL, v->virq, true);
}

bool viommu_queue_rearm(struct viommu *v, struct viommu_queue *q)
{
    ASSERT(spin_is_locked(&v->pd->lock));

    if ( !q->ready )
        return false;

    if ( viommu_has_feature(v, VIRTIO_F_EVENT_IDX) )
        write_atomic((uint16_t *)&q_used(q)->ring[q->num], q->last_avail);

    /* [D] The wish for a kick before the last look. */
    smp_mb();

    /* A broken index counts as work: whoever takes it will find out. */
    return viommu_queue_peek(v, q) != 0;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
