/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A software SMMUv3 for host tests (Arm IHI 0070).
 *
 * Unlike real or emulated ones it is as unhelpful as the architecture allows:
 * commands are consumed when a test says so, take effect only when a CMD_SYNC
 * after them is consumed, and caches keep whatever was ever fetched until a
 * command drops it.  What a driver must not do is a violation: it is printed
 * and counted, and each test ends with none.
 */
#ifndef SWSMMU_H
#define SWSMMU_H

#include "fake.h"

enum sw_mode {
    SW_AT_ONCE,     /* all that was published, when PROD is written */
    SW_LATE,        /* a command at every `late`-th read of CONS */
    SW_MANUAL,      /* sw_consume() by the test */
    SW_NEVER,       /* hangs */
    SW_THREAD,      /* a thread of its own */
};

enum { SW_OK = 0, SW_ILL = 1, SW_ABT = 2 };    /* CMDQ_CONS.ERR */

struct sw_cmd { uint64_t w[2]; };

/* A cached leaf, or a cached table (level of the entry that names it). */
struct sw_tlb {
    bool table;
    unsigned int vmid, level;
    uint64_t ipa, size;
    paddr_t pa;
    bool r, w;
};

/* What the SMMU may have seen of an entry since it was told to forget. */
#define SW_MAX_SEEN 8
struct sw_ste_seen {
    uint32_t sid;
    struct { unsigned int nr; uint64_t v[SW_MAX_SEEN]; } w[8];
};

struct sw_fault { unsigned int id; uint32_t sid; uint64_t addr; bool read; };

struct swsmmu {
    struct swsmmu *next;
    paddr_t addr;
    char *window;               /* what ioremap_nocache() returns: not memory */
    const char *name;
    struct dt_device_node node;

    /* Registers. */
    uint32_t idr0, idr1, idr3, idr5, iidr;
    uint32_t cr0, cr0ack, cr1, cr2, gbpa, irq_ctrl, irq_ctrlack;
    uint32_t gbpa_now;          /* what is in effect */
    uint32_t gerror, gerrorn, strtab_cfg, cmdq_prod, cmdq_cons;
    uint32_t evtq_prod, evtq_cons;
    uint64_t strtab_base, cmdq_base, evtq_base;
    uint64_t gerror_msi, evtq_msi, priq_msi;    /* IRQ_CFG0 */

    /* How it behaves. */
    enum sw_mode mode;
    unsigned int late;          /* SW_LATE: reads per command; SW_THREAD: us */
    unsigned int ack_delay;     /* reads until CR0ACK, GBPA follow */
    bool cr0_stuck, gbpa_stuck, irq_stuck;
    unsigned int deaf;          /* commands of this opcode have no effect */
    bool page0_only;            /* page 1 doesn't work */
    unsigned int max_unsynced;  /* commands in a row without a sync; 0: any */
    bool noncoherent;           /* reads only what was cleaned */
    bool at_sync;               /* commands take effect only at a sync */
    bool cs_msi;                /* dev_new(): the driver uses the write */
    bool msi_lost;              /* a sync's write never arrives */
    bool msi_early;             /* it arrives before CONS moves */
    int (*inject)(struct swsmmu *sw, const struct sw_cmd *c, unsigned int n);
    void (*hook)(struct swsmmu *sw);    /* after each command, store, register */
    bool quiet;                 /* violations are counted, not printed */

    /* What happened. */
    unsigned int violations;
    char last_violation[160];
    struct sw_cmd *log;
    unsigned int nr_log, max_log;
    unsigned int nr_consumed, nr_syncs, unsynced;
    unsigned int cons_reads, relaxes;
    bool irq_gerror, irq_evtq;  /* raised, see sw_run_irqs() */

    /* Inside. */
    pthread_mutex_t lock, cache_lock;
    pthread_t thread;
    bool stop, running;
    unsigned int reads_left;
    struct sw_cmd *todo;        /* at_sync: not yet in effect */
    unsigned int nr_todo, max_todo;
    struct sw_tlb *tlb;
    unsigned int nr_tlb, max_tlb;
    struct sw_ste_seen *ste;
    unsigned int nr_ste;
    bool was_blocked;           /* from the first GBPA abort on */
    int nested;
};

/* Capabilities of a common SMMU; change fields before sw_start(). */
void sw_init(struct swsmmu *sw, const char *name);
void sw_exit(struct swsmmu *sw);
/* For tests of parts: enable what CR0 bits say without checks. */
void sw_enable(struct swsmmu *sw, uint32_t cr0);
void sw_thread_start(struct swsmmu *sw);
void sw_thread_stop(struct swsmmu *sw);

/* Consume up to @max commands.  Returns how many. */
unsigned int sw_consume(struct swsmmu *sw, unsigned int max);
void sw_run_irqs(struct swsmmu *sw);

/*
 * A DMA access.  0: *pa is reached; an event number: the access faults, and is
 * recorded if the entry says so; -1: blocked without a record.
 */
int sw_dma(struct swsmmu *sw, uint32_t sid, uint64_t addr, bool write,
           paddr_t *pa);
/* Put a record into the event queue. */
void sw_event(struct swsmmu *sw, unsigned int id, uint32_t sid, uint64_t addr,
              bool read);
/* Raise GERROR bits. */
void sw_gerror(struct swsmmu *sw, uint32_t bits);

/* Would a DMA be able to pass untranslated at this moment? */
bool sw_bypasses(const struct swsmmu *sw);
/* Entries of any cache that reach into @pa..@pa+size. */
unsigned int sw_reaching(const struct swsmmu *sw, paddr_t pa, uint64_t size);

/*
 * All entries the SMMU may assemble from what it saw of @sid since it was told
 * to forget: calls @fn with each that is valid.
 */
void sw_ste_observe(struct swsmmu *sw, uint32_t sid);
void sw_ste_each(struct swsmmu *sw, uint32_t sid,
                 void (*fn)(const uint64_t *ste, void *arg), void *arg);
bool sw_ste_check(struct swsmmu *sw, const uint64_t *w, char *why);

bool sw_cmd_decode_range(const struct sw_cmd *c, uint64_t *start,
                         uint64_t *pages, unsigned int *ttl);
unsigned int sw_count(const struct swsmmu *sw, unsigned int opcode);

/* Called for each free of a page, see fake_page_freed: nothing may reach it. */
void sw_page_freed(struct page_info *pg);
void sw_violation(struct swsmmu *sw, const char *fmt, ...)
    __attribute__((__format__(__printf__, 2, 3)));

#endif /* SWSMMU_H */
