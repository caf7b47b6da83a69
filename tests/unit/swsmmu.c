/* SPDX-License-Identifier: GPL-2.0-only */
/* A software SMMUv3, see swsmmu.h.  Section numbers are those of IHI 0070. */

#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include "swsmmu.h"

/*
 * Offsets and fields are written down here anew, and not taken from the
 * driver's regs.h: a wrong one there has to be noticed.
 */
enum {
    R_IDR0 = 0x00, R_IDR1 = 0x04, R_IDR3 = 0x0c, R_IDR5 = 0x14, R_IIDR = 0x18,
    R_CR0 = 0x20, R_CR0ACK = 0x24, R_CR1 = 0x28, R_CR2 = 0x2c, R_GBPA = 0x44,
    R_IRQ_CTRL = 0x50, R_IRQ_CTRLACK = 0x54, R_GERROR = 0x60,
    R_GERRORN = 0x64, R_STRTAB_BASE = 0x80, R_STRTAB_CFG = 0x88,
    R_CMDQ_BASE = 0x90, R_CMDQ_PROD = 0x98, R_CMDQ_CONS = 0x9c,
    R_EVTQ_BASE = 0xa0, R_EVTQ_PROD = 0x100a8, R_EVTQ_CONS = 0x100ac,
    R_GERROR_IRQ = 0x68, R_EVTQ_IRQ = 0xb0, R_PRIQ_IRQ = 0xd0,
};

#define SMMUEN      1U
#define EVENTQEN    4U
#define CMDQEN      8U
#define GB_ABORT    (1U << 20)
#define GB_UPDATE   (1U << 31)
#define OVFLG       (1U << 31)
#define WINDOW      0x20000UL

#define BITS(v, hi, lo) (((v) >> (lo)) & (~0ULL >> (63 - ((hi) - (lo)))))

static struct swsmmu *all;

void sw_violation(struct swsmmu *sw, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(sw->last_violation, sizeof(sw->last_violation), fmt, ap);
    va_end(ap);
    __atomic_add_fetch(&sw->violations, 1, __ATOMIC_RELAXED);
    if ( !sw->quiet )
        fprintf(stderr, "swsmmu %s: violation: %s\n", sw->name,
                sw->last_violation);
}

static unsigned int oas(const struct swsmmu *sw)
{
    static const uint8_t bits[] = { 32, 36, 40, 42, 44, 48, 52, 56 };

    return bits[sw->idr5 & 7];
}

static unsigned int sid_size(const struct swsmmu *sw)
{
    return sw->idr1 & 0x3f;
}

/* Memory as this SMMU sees it; false: nothing there. */
static bool mem_read(struct swsmmu *sw, paddr_t pa, void *buf, size_t n)
{
    const char *from = sw->noncoherent ? fake_ram_seen : fake_ram;

    if ( pa < FAKE_RAM_BASE || pa - FAKE_RAM_BASE + n > FAKE_RAM_SIZE )
        return false;
    if ( !maddr_to_page(pa)->count_info )
        sw_violation(sw, "reads the free page at %#lx", (long)pa);
    memcpy(buf, from + (pa - FAKE_RAM_BASE), n);
    return true;
}

/*
 * The same for tables, which may change while they are read: the CPU's barriers
 * order that, and the thread sanitizer has no word for it.
 */
__attribute__((no_sanitize_thread))
static bool mem_walk(struct swsmmu *sw, paddr_t pa, uint64_t *buf, size_t n)
{
    const char *from = sw->noncoherent ? fake_ram_seen : fake_ram;
    size_t i;

    if ( pa < FAKE_RAM_BASE || pa - FAKE_RAM_BASE + n > FAKE_RAM_SIZE )
        return false;
    if ( !__atomic_load_n(&maddr_to_page(pa)->count_info, __ATOMIC_RELAXED) )
        sw_violation(sw, "walks the free page at %#lx", (long)pa);
    for ( i = 0; i < n / 8; i++ )
        buf[i] = ((const volatile uint64_t *)(from + (pa - FAKE_RAM_BASE)))[i];
    return true;
}

static void mem_write(struct swsmmu *sw, paddr_t pa, const void *buf, size_t n)
{
    char *to = sw->noncoherent ? fake_ram_seen : fake_ram;

    if ( pa < FAKE_RAM_BASE || pa - FAKE_RAM_BASE + n > FAKE_RAM_SIZE ||
         !maddr_to_page(pa)->count_info )
        sw_violation(sw, "writes to %#lx, which is not its", (long)pa);
    else
        memcpy(to + (pa - FAKE_RAM_BASE), buf, n);
}

static void call_hook(struct swsmmu *sw)
{
    if ( sw->hook && !sw->nested )
    {
        sw->nested++;
        sw->hook(sw);
        sw->nested--;
    }
}

static void relaxed(void);
static void msi_raise(struct swsmmu *sw, uint32_t bit, uint64_t to);

static void stored(void)
{
    struct swsmmu *sw;

    for ( sw = all; sw; sw = sw->next )
    {
        unsigned int i;

        for ( i = 0; i < sw->nr_ste; i++ )
            sw_ste_observe(sw, sw->ste[i].sid);
        call_hook(sw);
    }
}

void sw_init(struct swsmmu *sw, const char *name)
{
    static paddr_t next_addr = 0x9000000;
    pthread_mutexattr_t recursive;
    struct swsmmu **p;

    /* Still there after a test that failed. */
    for ( p = &all; *p; )
        if ( *p == sw )
            *p = sw->next;
        else
            p = &(*p)->next;

    memset(sw, 0, sizeof(*sw));
    sw->name = name;
    sw->addr = next_addr;
    next_addr += WINDOW;
    sw->window = mmap(NULL, WINDOW, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS |
                      MAP_NORESERVE, -1, 0);
    ASSERT(sw->window != MAP_FAILED);
    /* S2P, S1P, AArch64, coherent, MSI, SEV, VMID16, 2-level. */
    sw->idr0 = 1 | 2 | 2 << 2 | 1 << 4 | 1 << 13 | 1 << 14 | 1 << 18 |
               1U << 24 | 1 << 27;
    /* 16 bits of StreamID, 2^10 events, 2^11 commands. */
    sw->idr1 = 16 | 10 << 16 | 11 << 21;
    sw->idr5 = 5 | 1 << 4 | 1 << 6;     /* 48 bits; 4K, 64K */
    sw->iidr = 0x43b;
    sw->late = 1;
    pthread_mutex_init(&sw->lock, NULL);
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&sw->cache_lock, &recursive);
    pthread_mutexattr_destroy(&recursive);

    sw->node.name = sw->node.full_name = name;
    sw->node.reg = sw->addr;
    sw->node.reg_size = WINDOW;
    sw->node.irq_names[0] = "eventq";
    sw->node.irqs[0] = 40;
    sw->node.irq_names[1] = "gerror";
    sw->node.irqs[1] = 41;
    sw->node.props[0].name = "dma-coherent";
    sw->node.props[0].value = "";

    sw->next = all;
    all = sw;
    fake_store_hook(stored);
    fake_relax_hook = relaxed;
    fake_page_freed = sw_page_freed;
}

void sw_exit(struct swsmmu *sw)
{
    struct swsmmu **p;

    sw_thread_stop(sw);
    for ( p = &all; *p != sw; p = &(*p)->next )
        ASSERT(*p);
    *p = sw->next;
    munmap(sw->window, WINDOW);
    free(sw->log);
    free(sw->todo);
    free(sw->tlb);
    free(sw->ste);
    pthread_mutex_destroy(&sw->lock);
    pthread_mutex_destroy(&sw->cache_lock);
}

/*
 * Stream table entries (5.2)
 */

bool sw_ste_check(struct swsmmu *sw, const uint64_t *w, char *why)
{
    unsigned int cfg = BITS(w[0], 3, 1), t0sz = BITS(w[2], 37, 32);
    unsigned int sl0 = BITS(w[2], 39, 38), ps = BITS(w[2], 50, 48);
    unsigned int ia = 64 - t0sz, vmid = BITS(w[2], 15, 0), start, x;
    uint64_t ttb = w[3] & GENMASK(51, 4);

#define BAD(...) do { sprintf(why, __VA_ARGS__); return false; } while ( 0 )
    if ( !(w[0] & 1) || cfg == 0 )
        return true;
    if ( cfg != 6 )
        BAD("Config %u: bypass or stage 1", cfg);
    if ( w[0] & ~0xfULL )
        BAD("stage 1 fields in word 0: %#" PRIx64, w[0]);
    if ( w[1] & ~(3ULL << 44) )
        BAD("word 1 is %#" PRIx64, w[1]);
    if ( BITS(w[1], 29, 28) )
        BAD("EATS allows ATS");
    if ( BITS(w[1], 45, 44) != 1 )
        BAD("SHCFG is not incoming");
    if ( w[4] | w[5] | w[6] | w[7] )
        BAD("words 4 to 7 not 0");
    if ( BITS(w[2], 31, 16) || BITS(w[2], 63, 59) )
        BAD("reserved bits of word 2: %#" PRIx64, w[2]);
    if ( !(sw->idr0 & 1 << 18) && vmid > 255 )
        BAD("VMID %u, and no VMID16", vmid);
    if ( !(w[2] & 1ULL << 51) )
        BAD("S2AA64 is 0");
    if ( BITS(w[2], 47, 46) )
        BAD("S2TG is not 4K");
    if ( w[2] & 1ULL << 57 )
        BAD("S2S set: faults stall");
    if ( BITS(w[2], 56, 54) )
        BAD("S2PTW, S2HD or S2HA set");
    if ( !(w[2] & 1ULL << 53) )
        BAD("S2AFFD is 0");
    if ( ps > 5 || ps > (sw->idr5 & 7) )
        BAD("S2PS %u exceeds the output size", ps);
    if ( ia > oas(sw) && ia > 40 )
        BAD("S2T0SZ %u: %u bits, %u possible", t0sz, ia, oas(sw));
    switch ( sl0 )
    {
    case 0: if ( ia < 25 || ia > 34 ) BAD("SL0 0 with %u bits", ia); break;
    case 1: if ( ia < 31 || ia > 43 ) BAD("SL0 1 with %u bits", ia); break;
    case 2:
        if ( ia < 40 || ia > 48 )
            BAD("SL0 2 with %u bits", ia);
        if ( oas(sw) < 44 )
            BAD("level 0 with %u bits of output", oas(sw));
        break;
    default: BAD("SL0 3");
    }
    start = 2 - sl0;
    x = ia - (12 + 9 * (3 - start));
    if ( ttb & ((1ULL << max(x + 3, 6U)) - 1) )
        BAD("S2TTB %#" PRIx64 " not aligned", ttb);
    if ( ttb >> oas(sw) )
        BAD("S2TTB too large");
    if ( w[3] & ~GENMASK(51, 4) )
        BAD("word 3 is %#" PRIx64, w[3]);
#undef BAD
    return true;
}

/* Where the entry is.  0, or the event that a fetch raises. */
static int ste_addr(struct swsmmu *sw, uint32_t sid, paddr_t *pa)
{
    unsigned int log2 = sw->strtab_cfg & 0x3f;
    unsigned int split = BITS(sw->strtab_cfg, 10, 6);
    paddr_t base = sw->strtab_base & GENMASK(51, 6);
    uint64_t l1;
    unsigned int span;

    if ( log2 < 32 && (sid >> log2) )
        return 0x02;                        /* C_BAD_STREAMID */
    if ( !BITS(sw->strtab_cfg, 17, 16) )
    {
        *pa = base + (paddr_t)sid * 64;
        return 0;
    }
    if ( !mem_walk(sw, base + (paddr_t)(sid >> split) * 8, &l1, 8) )
        return 0x03;                        /* F_STE_FETCH */
    span = l1 & 0x1f;
    if ( !span || (sid & ((1U << split) - 1)) >> (span - 1) )
        return 0x02;
    if ( span > split + 1 )
        sw_violation(sw, "L1STD span %u with split %u", span, split);
    if ( (l1 & GENMASK(51, 6)) & ((64ULL << (span - 1)) - 1) )
        sw_violation(sw, "L1STD %#" PRIx64 " not aligned to its table", l1);
    if ( l1 & ~(GENMASK(51, 6) | 0x1f) )
        sw_violation(sw, "L1STD %#" PRIx64 ": reserved bits", l1);
    *pa = (l1 & GENMASK(51, 6)) + (paddr_t)(sid & ((1U << split) - 1)) * 64;
    return 0;
}

static struct sw_ste_seen *ste_seen(struct swsmmu *sw, uint32_t sid)
{
    unsigned int i;

    for ( i = 0; i < sw->nr_ste; i++ )
        if ( sw->ste[i].sid == sid )
            return &sw->ste[i];
    sw->ste = realloc(sw->ste, (sw->nr_ste + 1) * sizeof(*sw->ste));
    memset(&sw->ste[sw->nr_ste], 0, sizeof(*sw->ste));
    sw->ste[sw->nr_ste].sid = sid;
    return &sw->ste[sw->nr_ste++];
}

/* The SMMU looks at each word of the entry. */
void sw_ste_observe(struct swsmmu *sw, uint32_t sid)
{
    struct sw_ste_seen *s = ste_seen(sw, sid);
    uint64_t w[8];
    paddr_t pa;
    unsigned int i, j;

    if ( !sw->strtab_base || ste_addr(sw, sid, &pa) ||
         !mem_walk(sw, pa, w, sizeof(w)) )
        return;
    for ( i = 0; i < 8; i++ )
    {
        for ( j = 0; j < s->w[i].nr && s->w[i].v[j] != w[i]; j++ )
            continue;
        if ( j < s->w[i].nr )
            continue;
        ASSERT(j < SW_MAX_SEEN);
        s->w[i].v[s->w[i].nr++] = w[i];
    }
}

void sw_ste_each(struct swsmmu *sw, uint32_t sid,
                 void (*fn)(const uint64_t *ste, void *arg), void *arg)
{
    struct sw_ste_seen *s = ste_seen(sw, sid);
    unsigned int i[8] = {}, k;
    uint64_t w[8];

    for ( k = 0; k < 8; k++ )
        if ( !s->w[k].nr )
            return;
    do {
        for ( k = 0; k < 8; k++ )
            w[k] = s->w[k].v[i[k]];
        if ( (w[0] & 1) && BITS(w[0], 3, 1) )
            fn(w, arg);
        for ( k = 0; k < 8 && ++i[k] == s->w[k].nr; k++ )
            i[k] = 0;
    } while ( k < 8 );
}

static void ste_forget(struct swsmmu *sw, uint32_t first, uint32_t last)
{
    unsigned int i;

    for ( i = 0; i < sw->nr_ste; i++ )
        if ( sw->ste[i].sid >= first && sw->ste[i].sid <= last )
        {
            memset(sw->ste[i].w, 0, sizeof(sw->ste[i].w));
            sw_ste_observe(sw, sw->ste[i].sid);
        }
}

/*
 * TLB
 */

static void tlb_add(struct swsmmu *sw, const struct sw_tlb *e)
{
    unsigned int i;

    for ( i = 0; i < sw->nr_tlb; i++ )
        if ( !memcmp(&sw->tlb[i], e, sizeof(*e)) )
            return;
    if ( sw->nr_tlb == sw->max_tlb )
    {
        sw->max_tlb = sw->max_tlb ? 2 * sw->max_tlb : 64;
        sw->tlb = realloc(sw->tlb, sw->max_tlb * sizeof(*e));
    }
    sw->tlb[sw->nr_tlb++] = *e;
}

static void tlb_drop(struct swsmmu *sw, bool all_vmids, unsigned int vmid,
                     uint64_t start, uint64_t last, bool leaf,
                     unsigned int ttl)
{
    unsigned int i = 0;

    while ( i < sw->nr_tlb )
    {
        struct sw_tlb *e = &sw->tlb[i];

        if ( (all_vmids || e->vmid == vmid) &&
             e->ipa <= last && e->ipa + e->size - 1 >= start &&
             !(leaf && e->table) && !(ttl && !e->table && e->level != ttl) )
            *e = sw->tlb[--sw->nr_tlb];
        else
            i++;
    }
}

/* What the SMMU remembers: used by its thread and by those that do DMA. */
static void cache_lock(const struct swsmmu *sw)
{
    pthread_mutex_lock((pthread_mutex_t *)&sw->cache_lock);
}

static void cache_unlock(const struct swsmmu *sw)
{
    pthread_mutex_unlock((pthread_mutex_t *)&sw->cache_lock);
}

unsigned int sw_reaching(const struct swsmmu *sw, paddr_t pa, uint64_t size)
{
    unsigned int i, n = 0;

    cache_lock(sw);
    for ( i = 0; i < sw->nr_tlb; i++ )
    {
        const struct sw_tlb *e = &sw->tlb[i];
        uint64_t s = e->table ? PAGE_SIZE : e->size;

        n += e->pa < pa + size && pa < e->pa + s;
    }
    cache_unlock(sw);
    return n;
}

void sw_page_freed(struct page_info *pg)
{
    struct swsmmu *sw;
    paddr_t pa = page_to_maddr(pg);

    for ( sw = all; sw; sw = sw->next )
        if ( sw_reaching(sw, pa, PAGE_SIZE) )
            sw_violation(sw, "page %#lx is freed while it can be reached",
                         (long)pa);
}

/*
 * Commands (4)
 */

/* False: one address, any level. */
bool sw_cmd_decode_range(const struct sw_cmd *c, uint64_t *start,
                         uint64_t *pages, unsigned int *ttl)
{
    *start = c->w[1] & GENMASK(51, 12);
    *pages = 1;
    *ttl = 0;
    if ( !BITS(c->w[1], 11, 10) )
        return false;
    *ttl = BITS(c->w[1], 9, 8);
    *pages = (BITS(c->w[0], 16, 12) + 1) << BITS(c->w[0], 24, 20);
    return true;
}

static void effect(struct swsmmu *sw, const struct sw_cmd *c)
{
    unsigned int vmid = BITS(c->w[0], 47, 32), ttl;
    uint64_t start, pages;

    if ( (c->w[0] & 0xff) == sw->deaf )
        return;
    switch ( c->w[0] & 0xff )
    {
    case 0x03:
        ste_forget(sw, c->w[0] >> 32, c->w[0] >> 32);
        break;
    case 0x04:
        /* Range 31 is all of them; else 2^(n+1) aligned. */
        if ( (c->w[1] & 31) == 31 )
            ste_forget(sw, 0, ~0U);
        else
        {
            uint32_t mask = (2U << (c->w[1] & 31)) - 1;

            ste_forget(sw, (c->w[0] >> 32) & ~mask, (c->w[0] >> 32) | mask);
        }
        break;
    case 0x28:
        tlb_drop(sw, false, vmid, 0, ~0ULL, false, 0);
        break;
    case 0x30:
        tlb_drop(sw, true, 0, 0, ~0ULL, false, 0);
        break;
    case 0x2a:
        sw_cmd_decode_range(c, &start, &pages, &ttl);
        tlb_drop(sw, false, vmid, start, start + (pages << 12) - 1,
                 c->w[1] & 1, ttl);
        break;
    }
}

/* NULL, or what is wrong with the encoding. */
static const char *cmd_check(struct swsmmu *sw, const struct sw_cmd *c)
{
    uint64_t w0 = c->w[0], w1 = c->w[1];
    unsigned int tg = BITS(w1, 11, 10), ttl = BITS(w1, 9, 8);

    switch ( w0 & 0xff )
    {
    case 0x03:
        if ( w0 & GENMASK(31, 8) || w1 & ~1ULL )
            return "CFGI_STE: reserved bits";
        if ( sid_size(sw) < 32 && (w0 >> 32) >> sid_size(sw) )
            return "CFGI_STE: StreamID too large";
        return NULL;
    case 0x04:
        if ( w0 & GENMASK(31, 8) || w1 & ~31ULL )
            return "CFGI_STE_RANGE: reserved bits";
        return NULL;
    case 0x28:
        if ( w0 & ~(0xffffULL << 32 | 0xff) || w1 )
            return "TLBI_S12_VMALL: reserved bits";
        if ( !(sw->idr0 & 1 << 18) && BITS(w0, 47, 32) > 255 )
            return "TLBI_S12_VMALL: VMID";
        return NULL;
    case 0x30:
        if ( w0 != 0x30 || w1 )
            return "TLBI_NSNH_ALL: reserved bits";
        return NULL;
    case 0x2a:
        if ( w0 & ~(0xffffULL << 32 | 0x1fULL << 20 | 0x1fULL << 12 | 0xff) ||
             w1 & ~(GENMASK(51, 12) | 0xf01) )
            return "TLBI_S2_IPA: reserved bits";
        if ( !(sw->idr0 & 1 << 18) && BITS(w0, 47, 32) > 255 )
            return "TLBI_S2_IPA: VMID";
        if ( w1 & ~0xfffULL & ~GENMASK(oas(sw) - 1, 0) )
            return "TLBI_S2_IPA: address beyond the IPA size";
        if ( !(sw->idr3 & 1 << 10) )
            return w0 & (0x1fULL << 20 | 0x1fULL << 12) || tg || ttl ?
                   "TLBI_S2_IPA: range fields without RIL" : NULL;
        if ( !tg )
            return w0 & (0x1fULL << 20 | 0x1fULL << 12) || ttl ?
                   "TLBI_S2_IPA: range fields with TG 0" : NULL;
        if ( tg != 1 )
            return "TLBI_S2_IPA: TG is not 4K";
        if ( !ttl && !(w0 & (0x1fULL << 20 | 0x1fULL << 12)) )
            return "TLBI_S2_IPA: one page as a range";
        if ( ttl && !(w1 & 1) )
            return "TLBI_S2_IPA: level hint without leaf";
        if ( ttl && (w1 & GENMASK(51, 12)) & ((1ULL << (39 - 9 * ttl)) - 1) )
            return "TLBI_S2_IPA: address not aligned to the level";
        return NULL;
    case 0x46:
        if ( BITS(w0, 13, 12) == 3 )
            return "SYNC: CS 3";
        if ( BITS(w0, 13, 12) == 1 )
        {
            if ( !(sw->idr0 & 1 << 13) )
                return "SYNC: MSI without support";
            if ( w0 & GENMASK(21, 14) || w0 & GENMASK(31, 28) ||
                 w1 & ~GENMASK(51, 2) )
                return "SYNC: reserved bits";
            /* Ours: what the CPU polls is cached. */
            if ( BITS(w0, 23, 22) != 3 || BITS(w0, 27, 24) != 15 )
                return "SYNC: MSI not cacheable and shareable";
            if ( sw->noncoherent )
                return "SYNC: MSI of an SMMU that is not coherent";
            return NULL;
        }
        if ( w0 & ~(0xffULL | 3 << 12) || w1 )
            return "SYNC: reserved bits";
        return NULL;
    default:
        return "unknown opcode";
    }
}

static unsigned int cmdq_log2(const struct swsmmu *sw)
{
    return sw->cmdq_base & 0x1f;
}

/* These are read and written by several threads, also without the lock. */
#define LOAD(x)     __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define STORE(x, v) __atomic_store_n(&(x), v, __ATOMIC_RELEASE)

/* The write of a sync that asks for one (4.7.3). */
static void sync_write(struct swsmmu *sw, const struct sw_cmd *c)
{
    paddr_t pa = c->w[1] & GENMASK(51, 2);

    if ( (c->w[0] & 0xff) != 0x46 || BITS(c->w[0], 13, 12) != 1 ||
         sw->msi_lost )
        return;
    if ( pa < FAKE_RAM_BASE || pa - FAKE_RAM_BASE + 4 > FAKE_RAM_SIZE ||
         !maddr_to_page(pa)->count_info )
        sw_violation(sw, "SYNC: MSI to %#lx, which is not the driver's",
                     (long)pa);
    else
        STORE(*(uint32_t *)maddr_to_virt(pa), (uint32_t)(c->w[0] >> 32));
}

/* One command.  False: nothing to do, or stopped. */
static bool consume_one(struct swsmmu *sw)
{
    uint32_t mask = (2U << cmdq_log2(sw)) - 1;
    uint32_t prod = LOAD(sw->cmdq_prod) & mask;
    uint32_t cons = LOAD(sw->cmdq_cons) & mask;
    paddr_t pa;
    struct sw_cmd c;
    const char *why;
    int err = SW_OK;

    if ( !(LOAD(sw->cr0ack) & CMDQEN) || prod == cons ||
         ((LOAD(sw->gerror) ^ LOAD(sw->gerrorn)) & 1) )
        return false;
    if ( ((prod - cons) & mask) > (mask >> 1) + 1 )
    {
        sw_violation(sw, "PROD %#x is more than a queue ahead of CONS %#x",
                     prod, cons);
        return false;
    }

    pa = (sw->cmdq_base & GENMASK(51, 5)) + (cons & (mask >> 1)) * 16;
    if ( !mem_read(sw, pa, &c, sizeof(c)) )
        err = SW_ABT;
    else if ( sw->inject )
        err = sw->inject(sw, &c, sw->nr_consumed);
    if ( !err && (why = cmd_check(sw, &c)) )
    {
        sw_violation(sw, "%s: %016" PRIx64 " %016" PRIx64, why, c.w[0],
                     c.w[1]);
        err = SW_ILL;
    }
    if ( err )
    {
        STORE(sw->cmdq_cons, cons | (uint32_t)err << 24);
        STORE(sw->gerror, sw->gerror ^ 1);
        sw->irq_gerror = true;
        call_hook(sw);
        return false;
    }

    if ( sw->nr_log == sw->max_log )
    {
        sw->max_log = sw->max_log ? 2 * sw->max_log : 256;
        sw->log = realloc(sw->log, sw->max_log * sizeof(c));
    }
    sw->log[sw->nr_log++] = c;
    sw->nr_consumed++;
    if ( (c.w[0] & 0xff) == 0x46 )
        sw->unsynced = 0;
    else if ( sw->unsynced++ == sw->max_unsynced && sw->max_unsynced )
        sw_violation(sw, "more than %u commands without a sync",
                     sw->max_unsynced);

    if ( (c.w[0] & 0xff) == 0x46 )
    {
        unsigned int i;

        sw->nr_syncs++;
        /* In any order: last to first is as good as another. */
        cache_lock(sw);
        for ( i = sw->nr_todo; i; i-- )
            effect(sw, &sw->todo[i - 1]);
        cache_unlock(sw);
        sw->nr_todo = 0;
    }
    else if ( sw->at_sync )
    {
        if ( sw->nr_todo == sw->max_todo )
        {
            sw->max_todo = sw->max_todo ? 2 * sw->max_todo : 256;
            sw->todo = realloc(sw->todo, sw->max_todo * sizeof(c));
        }
        sw->todo[sw->nr_todo++] = c;
    }
    else
    {
        cache_lock(sw);
        effect(sw, &c);
        cache_unlock(sw);
    }

    if ( sw->msi_early )
        sync_write(sw, &c);
    STORE(sw->cmdq_cons, (cons + 1) & mask);
    if ( !sw->msi_early )
        sync_write(sw, &c);
    call_hook(sw);
    return true;
}

unsigned int sw_consume(struct swsmmu *sw, unsigned int max)
{
    unsigned int n = 0;

    while ( n < max && consume_one(sw) )
        n++;
    return n;
}

static void *thread(void *arg)
{
    struct swsmmu *sw = arg;
    unsigned int rnd = 1;

    while ( !LOAD(sw->stop) )
    {
        rnd = rnd * 1103515245 + 12345;
        if ( !sw_consume(sw, 1 + (rnd >> 16) % 37) )
            sched_yield();
        else if ( sw->late > 1 )
            usleep(sw->late);
    }
    return NULL;
}

void sw_thread_start(struct swsmmu *sw)
{
    sw->mode = SW_THREAD;
    sw->stop = false;
    sw->running = true;
    pthread_create(&sw->thread, NULL, thread, sw);
}

void sw_thread_stop(struct swsmmu *sw)
{
    if ( !sw->running )
        return;
    STORE(sw->stop, true);
    pthread_join(sw->thread, NULL);
    sw->running = false;
    sw->mode = SW_MANUAL;
}

void sw_run_irqs(struct swsmmu *sw)
{
    if ( sw->irq_gerror && (sw->irq_ctrlack & 1) )
    {
        sw->irq_gerror = false;
        fake_irq(41);
    }
    if ( sw->irq_evtq && (sw->irq_ctrlack & 4) )
    {
        sw->irq_evtq = false;
        fake_irq(40);
    }
}

void sw_gerror(struct swsmmu *sw, uint32_t bits)
{
    STORE(sw->gerror, sw->gerror ^ bits);
    sw->irq_gerror = true;
    msi_raise(sw, 1, sw->gerror_msi);
}

unsigned int sw_count(const struct swsmmu *sw, unsigned int opcode)
{
    unsigned int i, n = 0;

    for ( i = 0; i < sw->nr_log; i++ )
        n += (sw->log[i].w[0] & 0xff) == opcode;
    return n;
}

/*
 * Translation (3.3, 3.4)
 */

void sw_event(struct swsmmu *sw, unsigned int id, uint32_t sid, uint64_t addr,
              bool read)
{
    unsigned int log2 = sw->evtq_base & 0x1f;
    uint32_t mask = (2U << log2) - 1;
    uint32_t prod = sw->evtq_prod & mask, cons = sw->evtq_cons & mask;
    /* Bits beyond what was fetched are other things. */
    uint64_t w[4] = { id | (uint64_t)sid << 32, (uint64_t)read << 35, addr,
                      0xfff4567890123458 | 7 };

    if ( !(sw->cr0ack & EVENTQEN) )
        return;
    if ( (prod ^ cons) == 1U << log2 )
    {
        if ( !((sw->evtq_prod ^ sw->evtq_cons) & OVFLG) )
            sw->evtq_prod ^= OVFLG;
    }
    else
    {
        mem_write(sw, (sw->evtq_base & GENMASK(51, 5)) +
                  (prod & (mask >> 1)) * 32, w, sizeof(w));
        sw->evtq_prod = (sw->evtq_prod & OVFLG) | ((prod + 1) & mask);
    }
    sw->irq_evtq = true;
    msi_raise(sw, 4, sw->evtq_msi);
}

struct pick { uint64_t w[8]; bool found; };

static void pick_last(const uint64_t *ste, void *arg)
{
    struct pick *p = arg;

    memcpy(p->w, ste, sizeof(p->w));
    p->found = true;
}

static int walk(struct swsmmu *sw, const uint64_t *ste, uint64_t ipa,
                bool write, paddr_t *pa)
{
    unsigned int vmid = BITS(ste[2], 15, 0), ia = 64 - BITS(ste[2], 37, 32);
    unsigned int level = 2 - BITS(ste[2], 39, 38), i;
    paddr_t table = ste[3] & GENMASK(51, 4);
    const struct sw_tlb *hit = NULL, *tab = NULL;
    struct sw_tlb e;
    bool first = true;

    if ( ipa >> ia )
        return 0x10;
    for ( i = 0; i < sw->nr_tlb; i++ )
    {
        const struct sw_tlb *t = &sw->tlb[i];

        if ( t->vmid != vmid || ipa < t->ipa || ipa - t->ipa >= t->size )
            continue;
        if ( !t->table )
            hit = hit ?: t;
        else if ( !tab || t->level > tab->level )
            tab = t;
    }
    if ( hit )
    {
        *pa = hit->pa + (ipa - hit->ipa);
        return (write ? hit->w : hit->r) ? 0 : 0x13;
    }
    if ( tab )
    {
        table = tab->pa;
        level = tab->level + 1;
        first = false;
    }
    for ( ; ; level++, first = false )
    {
        unsigned int shift = 12 + 9 * (3 - level);
        uint64_t index = ipa >> shift, pte;

        if ( !first )
            index &= 511;
        if ( !mem_walk(sw, table + index * 8, &pte, 8) )
            return 0x0b;
        if ( !(pte & 1) || (level == 3 && !(pte & 2)) )
            return 0x10;

        memset(&e, 0, sizeof(e));
        e.vmid = vmid;
        e.level = level;
        e.size = 1ULL << shift;
        e.ipa = ipa & ~(e.size - 1);
        if ( level < 3 && (pte & 2) )
        {
            if ( pte & ~(GENMASK(47, 12) | 3) )
                sw_violation(sw, "table entry %#" PRIx64, pte);
            e.table = true;
            e.pa = table = pte & GENMASK(47, 12);
            tlb_add(sw, &e);
            continue;
        }
        if ( level == 0 )
        {
            sw_violation(sw, "block at level 0: %#" PRIx64, pte);
            return 0x10;
        }
        if ( (pte & GENMASK(47, 12)) & (e.size - 1) )
            sw_violation(sw, "block %#" PRIx64 " not aligned", pte);
        if ( pte & (GENMASK(63, 59) | GENMASK(51, 48)) )
            sw_violation(sw, "leaf %#" PRIx64 ": reserved bits", pte);
        if ( !(pte & 1 << 10) )
            sw_violation(sw, "leaf %#" PRIx64 " without access flag", pte);
        if ( BITS(pte, 9, 8) == 1 )
            sw_violation(sw, "leaf %#" PRIx64 ": reserved shareability", pte);
        e.pa = pte & GENMASK(47, 12) & ~(e.size - 1);
        e.r = pte & 1 << 6;
        e.w = pte & 1 << 7;
        tlb_add(sw, &e);
        *pa = e.pa + (ipa - e.ipa);
        return (write ? e.w : e.r) ? 0 : 0x13;
    }
}

static int dma(struct swsmmu *sw, uint32_t sid, uint64_t addr, bool write,
               paddr_t *pa)
{
    struct pick p = {};
    char why[128];
    paddr_t at;
    int rc;

    *pa = ~0ULL;
    if ( !(sw->cr0ack & SMMUEN) )
    {
        if ( sw->gbpa_now & GB_ABORT )
            return -1;
        *pa = addr;
        return 0;
    }
    rc = ste_addr(sw, sid, &at);
    if ( rc )
    {
        if ( rc != 0x02 || (sw->cr2 & 2) )
            sw_event(sw, rc, sid, addr, !write);
        return rc;
    }
    sw_ste_observe(sw, sid);
    sw_ste_each(sw, sid, pick_last, &p);
    if ( !p.found )
    {
        uint64_t w0;

        if ( !mem_walk(sw, at, &w0, 8) )
            rc = 0x03;
        else if ( w0 & 1 )
            return -1;                      /* abort, without a record */
        else
            rc = 0x04;                      /* C_BAD_STE */
        sw_event(sw, rc, sid, addr, !write);
        return rc;
    }
    if ( !sw_ste_check(sw, p.w, why) )
    {
        sw_violation(sw, "STE of %#x: %s", sid, why);
        return 0x04;
    }
    rc = walk(sw, p.w, addr, write, pa);
    if ( rc && (p.w[2] & 1ULL << 58) )
        sw_event(sw, rc, sid, addr, !write);
    if ( !rc && *pa - FAKE_RAM_BASE < FAKE_RAM_SIZE &&
         !__atomic_load_n(&maddr_to_page(*pa)->count_info, __ATOMIC_RELAXED) )
        sw_violation(sw, "DMA of stream %#x reaches the free page %#lx", sid,
                     (long)*pa);
    return rc;
}

int sw_dma(struct swsmmu *sw, uint32_t sid, uint64_t addr, bool write,
           paddr_t *pa)
{
    int rc;

    cache_lock(sw);
    rc = dma(sw, sid, addr, write, pa);
    cache_unlock(sw);
    return rc;
}

/*
 * Registers (6.3)
 */

bool sw_bypasses(const struct swsmmu *sw)
{
    return !(sw->cr0ack & SMMUEN) && !(sw->gbpa_now & GB_ABORT);
}

static void check_bypass(struct swsmmu *sw)
{
    if ( !sw_bypasses(sw) && !sw->was_blocked &&
         (sw->gbpa_now & GB_ABORT) )
        sw->was_blocked = true;
    if ( sw->was_blocked && sw_bypasses(sw) )
        sw_violation(sw, "transactions pass untranslated");
}

static void queue_check(struct swsmmu *sw, uint64_t base, unsigned int entry,
                        unsigned int max_log2, const char *what)
{
    unsigned int log2 = base & 0x1f;
    uint64_t addr = base & GENMASK(51, 5);

    if ( log2 > max_log2 )
        sw_violation(sw, "%s: 2^%u entries, at most 2^%u", what, log2,
                     max_log2);
    if ( addr & (((uint64_t)entry << log2) - 1) )
        sw_violation(sw, "%s: base %#" PRIx64 " not aligned to its size",
                     what, addr);
    if ( base & ~(GENMASK(51, 5) | 0x1f | 1ULL << 62) )
        sw_violation(sw, "%s: reserved bits %#" PRIx64, what, base);
    if ( !mfn_valid(maddr_to_mfn(addr)) )
        sw_violation(sw, "%s: base %#" PRIx64 " is not memory", what, addr);
}

static void strtab_check(struct swsmmu *sw)
{
    unsigned int log2 = sw->strtab_cfg & 0x3f, fmt, split;
    uint64_t base = sw->strtab_base & GENMASK(51, 6), size;

    fmt = BITS(sw->strtab_cfg, 17, 16);
    split = BITS(sw->strtab_cfg, 10, 6);
    if ( log2 > sid_size(sw) )
        sw_violation(sw, "STRTAB_BASE_CFG: 2^%u, at most 2^%u", log2,
                     sid_size(sw));
    if ( fmt > 1 || (fmt && !(sw->idr0 & 1 << 27)) )
        sw_violation(sw, "STRTAB_BASE_CFG: format %u", fmt);
    if ( fmt && split != 6 && split != 8 && split != 10 )
        sw_violation(sw, "STRTAB_BASE_CFG: split %u", split);
    size = fmt ? max(64ULL, 8ULL << (log2 > split ? log2 - split : 0))
               : 64ULL << log2;
    if ( base & (size - 1) )
        sw_violation(sw, "stream table base not aligned to its size");
    if ( sw->strtab_base & ~(GENMASK(51, 6) | 1ULL << 62) )
        sw_violation(sw, "STRTAB_BASE: reserved bits");
    if ( sw->strtab_cfg & ~(3U << 16 | 0x1f << 6 | 0x3f) )
        sw_violation(sw, "STRTAB_BASE_CFG: reserved bits");
}

static void cr0_apply(struct swsmmu *sw)
{
    uint32_t on = sw->cr0 & ~sw->cr0ack;

    if ( on & CMDQEN )
    {
        queue_check(sw, sw->cmdq_base, 16, BITS(sw->idr1, 25, 21),
                    "command queue");
        if ( sw->cmdq_prod != sw->cmdq_cons )
            sw_violation(sw, "command queue enabled with PROD %#x CONS %#x",
                         sw->cmdq_prod, sw->cmdq_cons);
    }
    if ( on & EVENTQEN )
        queue_check(sw, sw->evtq_base, 32, BITS(sw->idr1, 20, 16),
                    "event queue");
    if ( on & SMMUEN )
        strtab_check(sw);
    STORE(sw->cr0ack, sw->cr0 & (SMMUEN | EVENTQEN | CMDQEN));
    check_bypass(sw);
    if ( !(sw->cr0ack & SMMUEN) )
        return;
    if ( !(sw->cr2 & 4) )
        sw_violation(sw, "enabled without PTM: broadcast TLBI of the CPUs");
}

void sw_enable(struct swsmmu *sw, uint32_t cr0)
{
    sw->cr0 = sw->cr0ack = cr0;
}

/* CR0ACK and GBPA follow at once, or after some reads. */
static void settle(struct swsmmu *sw)
{
    if ( sw->reads_left && --sw->reads_left )
        return;
    if ( sw->cr0 != sw->cr0ack && !sw->cr0_stuck )
        cr0_apply(sw);
    if ( !sw->gbpa_stuck )
    {
        sw->gbpa &= ~GB_UPDATE;
        sw->gbpa_now = sw->gbpa;
    }
    if ( !sw->irq_stuck )
        sw->irq_ctrlack = sw->irq_ctrl & 7;
    check_bypass(sw);
}

static struct swsmmu *find(const volatile void *p, unsigned long *off)
{
    struct swsmmu *sw;

    for ( sw = all; sw; sw = sw->next )
        if ( (unsigned long)p - (unsigned long)sw->window < WINDOW )
        {
            *off = (unsigned long)p - (unsigned long)sw->window;
            if ( sw->page0_only )
            {
                if ( *off >= 0x10000 )
                    sw_violation(sw, "access to page 1, register %#lx", *off);
                else if ( *off == (R_EVTQ_PROD & 0xffff) ||
                          *off == (R_EVTQ_CONS & 0xffff) )
                    *off |= 0x10000;
            }
            return sw;
        }
    fake_panic(__FILE__, __LINE__, "access to no device");
}

void *ioremap_nocache(paddr_t ma, size_t len)
{
    struct swsmmu *sw;

    if ( fake_alloc_fail && !--fake_alloc_fail )
        return NULL;
    for ( sw = all; sw; sw = sw->next )
        if ( ma >= sw->addr && ma + len <= sw->addr + WINDOW )
            return sw->window + (ma - sw->addr);
    return NULL;
}

void iounmap(void *va)
{
    (void)va;
}

/* Who polls a word and no register is served, too. */
static void relaxed(void)
{
    struct swsmmu *sw;

    for ( sw = all; sw; sw = sw->next )
        if ( sw->mode == SW_LATE && ++sw->relaxes % sw->late == 0 )
            sw_consume(sw, 1);
}

uint32_t fake_readl(const volatile void *p)
{
    unsigned long off;
    struct swsmmu *sw = find(p, &off);
    uint32_t v = 0;

    switch ( off )
    {
    case R_CMDQ_CONS:
        __atomic_add_fetch(&sw->cons_reads, 1, __ATOMIC_RELAXED);
        if ( sw->mode == SW_LATE && sw->cons_reads % sw->late == 0 )
            sw_consume(sw, 1);
        return LOAD(sw->cmdq_cons);
    case R_CMDQ_PROD: return LOAD(sw->cmdq_prod);
    case R_GERROR: return LOAD(sw->gerror);
    case R_GERRORN: return LOAD(sw->gerrorn);
    }

    pthread_mutex_lock(&sw->lock);
    settle(sw);
    switch ( off )
    {
    case R_IDR0: v = sw->idr0; break;
    case R_IDR1: v = sw->idr1; break;
    case R_IDR3: v = sw->idr3; break;
    case R_IDR5: v = sw->idr5; break;
    case R_IIDR: v = sw->iidr; break;
    case R_CR0: v = sw->cr0; break;
    case R_CR0ACK: v = sw->cr0ack; break;
    case R_CR1: v = sw->cr1; break;
    case R_CR2: v = sw->cr2; break;
    case R_GBPA: v = sw->gbpa; break;
    case R_IRQ_CTRL: v = sw->irq_ctrl; break;
    case R_IRQ_CTRLACK: v = sw->irq_ctrlack; break;
    case R_EVTQ_PROD: v = sw->evtq_prod; break;
    case R_EVTQ_CONS: v = sw->evtq_cons; break;
    case R_STRTAB_CFG: v = sw->strtab_cfg; break;
    default: sw_violation(sw, "read of register %#lx", off); break;
    }
    pthread_mutex_unlock(&sw->lock);
    return v;
}

static void need_off(struct swsmmu *sw, uint32_t bit, const char *what)
{
    if ( (sw->cr0 | sw->cr0ack) & bit )
        sw_violation(sw, "%s written while enabled", what);
}

/* 6.3.17: only with that interrupt off, and where there is the register. */
static void msi_check(struct swsmmu *sw, uint32_t bit, uint32_t need)
{
    if ( (sw->irq_ctrl | sw->irq_ctrlack) & bit )
        sw_violation(sw, "IRQ_CFG0 written while the interrupt is on");
    if ( (sw->idr0 & need) != need )
        sw_violation(sw, "IRQ_CFG0 written, and there is none");
}

/* The interrupt is a write to memory that isn't ours. */
static void msi_raise(struct swsmmu *sw, uint32_t bit, uint64_t to)
{
    if ( to && (sw->irq_ctrlack & bit) )
        sw_violation(sw, "an MSI is written to %#lx", (long)to);
}

void fake_writel(uint32_t v, volatile void *p)
{
    unsigned long off;
    struct swsmmu *sw = find(p, &off);

    switch ( off )
    {
    case R_CMDQ_PROD:
        STORE(sw->cmdq_prod, v);
        if ( sw->mode == SW_AT_ONCE )
            sw_consume(sw, UINT_MAX);
        return;
    case R_GERRORN:
        /* 6.3.20: toggling what is not active is unpredictable. */
        if ( (v ^ sw->gerrorn) & ~(LOAD(sw->gerror) ^ sw->gerrorn) )
            sw_violation(sw, "GERRORN %#x with GERROR %#x GERRORN %#x", v,
                         sw->gerror, sw->gerrorn);
        STORE(sw->gerrorn, v);
        if ( sw->mode == SW_AT_ONCE )
            sw_consume(sw, UINT_MAX);
        return;
    }

    pthread_mutex_lock(&sw->lock);
    switch ( off )
    {
    case R_CR0:
        if ( sw->cr0 != sw->cr0ack )
            sw_violation(sw, "CR0 written before CR0ACK followed");
        sw->cr0 = v;
        sw->reads_left = sw->ack_delay;
        break;
    case R_CR1: need_off(sw, SMMUEN | EVENTQEN | CMDQEN, "CR1"); sw->cr1 = v; break;
    case R_CR2: need_off(sw, SMMUEN, "CR2"); sw->cr2 = v; break;
    case R_GBPA:
        if ( sw->gbpa & GB_UPDATE )
            sw_violation(sw, "GBPA written while an update is pending");
        if ( v & GB_UPDATE )
        {
            sw->gbpa = v;
            sw->reads_left = sw->ack_delay;
        }
        break;
    case R_IRQ_CTRL: sw->irq_ctrl = v; sw->reads_left = sw->ack_delay; break;
    case R_STRTAB_CFG: need_off(sw, SMMUEN, "STRTAB_BASE_CFG"); sw->strtab_cfg = v; break;
    case R_CMDQ_CONS: need_off(sw, CMDQEN, "CMDQ_CONS"); sw->cmdq_cons = v; break;
    case R_EVTQ_PROD: need_off(sw, EVENTQEN, "EVENTQ_PROD"); sw->evtq_prod = v; break;
    case R_EVTQ_CONS:
        if ( sw->cr0ack & EVENTQEN )
        {
            uint32_t mask = (2U << (sw->evtq_base & 0x1f)) - 1;

            if ( ((v - sw->evtq_cons) & mask) >
                 ((sw->evtq_prod - sw->evtq_cons) & mask) )
                sw_violation(sw, "EVENTQ_CONS passes PROD");
        }
        sw->evtq_cons = v;
        break;
    default: sw_violation(sw, "write to register %#lx", off); break;
    }
    if ( !sw->ack_delay )
        settle(sw);
    check_bypass(sw);
    call_hook(sw);
    pthread_mutex_unlock(&sw->lock);
}

void fake_writeq(uint64_t v, volatile void *p)
{
    unsigned long off;
    struct swsmmu *sw = find(p, &off);

    pthread_mutex_lock(&sw->lock);
    switch ( off )
    {
    case R_STRTAB_BASE: need_off(sw, SMMUEN, "STRTAB_BASE"); sw->strtab_base = v; break;
    case R_CMDQ_BASE: need_off(sw, CMDQEN, "CMDQ_BASE"); sw->cmdq_base = v; break;
    case R_EVTQ_BASE: need_off(sw, EVENTQEN, "EVENTQ_BASE"); sw->evtq_base = v; break;
    case R_GERROR_IRQ: msi_check(sw, 1, 1 << 13); sw->gerror_msi = v; break;
    case R_EVTQ_IRQ: msi_check(sw, 4, 1 << 13); sw->evtq_msi = v; break;
    case R_PRIQ_IRQ: msi_check(sw, 2, 1 << 13 | 1 << 16); sw->priq_msi = v; break;
    default: sw_violation(sw, "64-bit write to register %#lx", off); break;
    }
    call_hook(sw);
    pthread_mutex_unlock(&sw->lock);
}

uint64_t fake_readq(const volatile void *p)
{
    unsigned long off;
    struct swsmmu *sw = find(p, &off);

    switch ( off )
    {
    case R_STRTAB_BASE: return sw->strtab_base;
    case R_CMDQ_BASE: return sw->cmdq_base;
    case R_EVTQ_BASE: return sw->evtq_base;
    }
    sw_violation(sw, "64-bit read of register %#lx", off);
    return 0;
}
