/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Taking over an SMMUv3: what it can do, quiesce, tables and queues, enable.
 *
 * At no point of this file does a transaction pass untranslated: GBPA aborts
 * whenever translation is off (IHI 0070 6.3.13).
 */

#include <xen/bitmap.h>
#include <xen/lib.h>
#include <xen/mm.h>
#include <xen/sched.h>
#include <xen/vmap.h>
#include <xen/xmalloc.h>

#include <asm/io.h>

#include "../compat.h"
#include "smmu.h"

LIST_HEAD(smmu_devices);
unsigned int smmu_nr;

/* Register writes take effect in microseconds; 100 ms is for broken ones. */
#define REG_TIMEOUT MILLISECS(100)

static int reg_wait(struct smmu_device *smmu, unsigned int reg,
                    const char *name, uint32_t mask, uint32_t want)
{
    s_time_t deadline = NOW() + REG_TIMEOUT;

    while ( (smmu_read(smmu, reg) & mask) != want )
    {
        if ( NOW() > deadline )
        {
            printk(XENLOG_ERR
                   "pviommu: %s: register %s (%#x) is %#x, %#x expected of %#x\n",
                   dt_node_full_name(smmu->node), name, reg,
                   smmu_read(smmu, reg), want, mask);
            return -ENODEV;
        }
        cpu_relax();
    }

    return 0;
}

static int cr0_write(struct smmu_device *smmu, uint32_t v)
{
    writel(v, smmu->base + SMMU_CR0);

    return reg_wait(smmu, SMMU_CR0ACK, "CR0ACK",
                    CR0_SMMUEN | CR0_EVENTQEN | CR0_CMDQEN, v);
}

/* What firmware left, before anything of it is changed. */
static void smmu_found(struct smmu_device *smmu)
{
    uint32_t cr0 = smmu_read(smmu, SMMU_CR0);
    uint32_t gbpa = smmu_read(smmu, SMMU_GBPA);
    uint32_t gerror = smmu_read(smmu, SMMU_GERROR) ^
                      smmu_read(smmu, SMMU_GERRORN);

    printk(XENLOG_INFO
           "pviommu: %s: firmware left it %s%s%s (CR0 %#x GBPA %#x GERROR %#x)\n",
           dt_node_full_name(smmu->node),
           cr0 & CR0_SMMUEN ? "on"
                            : gbpa & GBPA_ABORT ? "off, blocking"
                                                : "off, DMA passing",
           cr0 & (CR0_CMDQEN | CR0_EVENTQEN) ? ", its queues running" : "",
           gerror & GERROR_MASK ? ", an error pending" : "", cr0, gbpa, gerror);
}

/* Block everything: GBPA first, so that clearing SMMUEN opens nothing. */
static int smmu_quiesce(struct smmu_device *smmu)
{
    int rc = reg_wait(smmu, SMMU_GBPA, "GBPA", GBPA_UPDATE, 0);

    if ( rc )
        return rc;
    writel(GBPA_UPDATE | GBPA_ABORT, smmu->base + SMMU_GBPA);
    rc = reg_wait(smmu, SMMU_GBPA, "GBPA", GBPA_UPDATE | GBPA_ABORT,
                  GBPA_ABORT);
    if ( rc )
        return rc;

    rc = cr0_write(smmu, 0);
    if ( rc )
        return rc;

    writel(0, smmu->base + SMMU_IRQ_CTRL);
    return reg_wait(smmu, SMMU_IRQ_CTRLACK, "IRQ_CTRLACK",
                    IRQ_CTRL_GERROR | IRQ_CTRL_PRIQ | IRQ_CTRL_EVENTQ, 0);
}

void smmu_shutdown(struct smmu_device *smmu)
{
    if ( smmu_quiesce(smmu) )
        printk(XENLOG_ERR "pviommu: %s: DMA could not be blocked\n",
               dt_node_full_name(smmu->node));
}

static unsigned int oas_bits(uint32_t idr5)
{
    static const uint8_t bits[] = { 32, 36, 40, 42, 44, 48, 48, 48 };

    /* 52-bit output needs 64K granules; with 4K tables 48 bits are the end. */
    return bits[IDR5_OAS(idr5)];
}

#define REFUSE(smmu, reg, value, why) do {                              \
    printk(XENLOG_ERR                                                   \
           "pviommu: %s: %s (%s %#010x): its devices stay blocked\n",   \
           dt_node_full_name((smmu)->node), why, reg, value);           \
    return -ENODEV;                                                     \
} while ( 0 )

/* What can't be used is refused here, before anything was allocated. */
static int smmu_identify(struct smmu_device *smmu, bool *two_level,
                         unsigned int *cmdq_bits, unsigned int *evtq_bits)
{
    uint32_t idr0 = smmu_read(smmu, SMMU_IDR0);
    uint32_t idr1 = smmu_read(smmu, SMMU_IDR1);
    uint32_t idr3 = smmu_read(smmu, SMMU_IDR3);
    uint32_t idr5 = smmu_read(smmu, SMMU_IDR5);
    bool coherent = smmu_tree_coherent(smmu->node);

    if ( !(idr0 & IDR0_S2P) )
        REFUSE(smmu, "IDR0", idr0, "no stage-2 translation");
    if ( !(IDR0_TTF(idr0) & 2) )
        REFUSE(smmu, "IDR0", idr0, "no AArch64 translation tables");
    if ( IDR0_TTENDIAN(idr0) == 3 )
        REFUSE(smmu, "IDR0", idr0, "big endian tables only");
    if ( IDR0_STALL_MODEL(idr0) == 2 )
        REFUSE(smmu, "IDR0", idr0, "faults always stall");
    if ( idr1 & (IDR1_TABLES_PRESET | IDR1_QUEUES_PRESET | IDR1_REL) )
        REFUSE(smmu, "IDR1", idr1, "tables or queues at fixed addresses");
    if ( !(idr5 & IDR5_GRAN4K) )
        REFUSE(smmu, "IDR5", idr5, "no 4K granule");

    *two_level = IDR0_ST_LEVEL(idr0);
    *cmdq_bits = IDR1_CMDQS(idr1);
    *evtq_bits = IDR1_EVENTQS(idr1);
    smmu->sid_bits = IDR1_SIDSIZE(idr1);
    smmu->bbml = IDR3_BBML(idr3);
    smmu->vmid_bits = idr0 & IDR0_VMID16 ? 16 : 8;
    smmu->oas = min_t(unsigned int, oas_bits(idr5), PADDR_BITS);
    /* With AArch64 tables a stage-2 input is as wide as the output (3.4.1). */
    smmu->ias = smmu->oas;

    /* The tree knows the interconnect, the register only the SMMU. */
    if ( coherent )
        smmu->flags |= SMMU_F_COHERENT;
    if ( coherent != !!(idr0 & IDR0_COHACC) )
        printk(XENLOG_WARNING
               "pviommu: %s: device tree says %scoherent, IDR0 %#010x differs\n",
               dt_node_full_name(smmu->node), coherent ? "" : "not ", idr0);
    if ( IDR0_TTF(idr0) && (idr3 & IDR3_RIL) )
        smmu->flags |= SMMU_F_RIL;
    /* What it writes has to reach a cached word. */
    if ( coherent && (idr0 & IDR0_COHACC) && (idr0 & IDR0_MSI) )
        smmu->flags |= SMMU_F_MSI;

    printk(XENLOG_INFO
           "pviommu: %s: IDR0 %08x IDR1 %08x IDR3 %08x IDR5 %08x IIDR %08x\n",
           dt_node_full_name(smmu->node), idr0, idr1, idr3, idr5,
           smmu_read(smmu, SMMU_IIDR));

    return 0;
}

/* The queue answers, and nothing was rejected: or the SMMU isn't used. */
static int smmu_self_check(struct smmu_device *smmu)
{
    struct smmu_batch b;
    uint32_t gerror;
    int rc;

    smmu_batch_init(&b, smmu);
    rc = smmu_batch_add(&b, CMD_OP_CFGI_ALL, CMD_CFGI_ALL_RANGE);
    rc = rc ?: smmu_batch_add(&b, CMD_OP_TLBI_NSNH_ALL, 0);
    rc = rc ?: smmu_batch_sync(&b);

    gerror = smmu_read(smmu, SMMU_GERROR) ^ smmu_read(smmu, SMMU_GERRORN);
    if ( rc || (gerror & GERROR_MASK) )
        REFUSE(smmu, "GERROR", gerror, "the command queue fails its self-check");

    return 0;
}

/*
 * The addresses of MSIs that firmware may have left: the SMMU's own writes are
 * not translated, and would hit what is there now.  Address 0 means none.
 */
static void smmu_forget_msis(struct smmu_device *smmu)
{
    uint32_t idr0 = smmu_read(smmu, SMMU_IDR0);

    if ( !(idr0 & IDR0_MSI) )
        return;
    writeq_relaxed(0, smmu->base + SMMU_GERROR_IRQ_CFG0);
    writeq_relaxed(0, smmu->base + SMMU_EVENTQ_IRQ_CFG0);
    if ( idr0 & IDR0_PRI )
        writeq_relaxed(0, smmu->base + SMMU_PRIQ_IRQ_CFG0);
}

static int smmu_init(struct smmu_device *smmu)
{
    uint32_t irqs;
    unsigned int cmdq_bits, evtq_bits;
    bool two_level;
    int rc;

    smmu_found(smmu);
    rc = smmu_quiesce(smmu);
    rc = rc ?: smmu_identify(smmu, &two_level, &cmdq_bits, &evtq_bits);
    if ( rc )
        return rc;

    smmu->vmids = xzalloc_array(unsigned long,
                                BITS_TO_LONGS(1U << smmu->vmid_bits));
    if ( !smmu->vmids )
        return -ENOMEM;
    __set_bit(SMMU_VMID_BLOCKED, smmu->vmids);

    smmu_forget_msis(smmu);
    writel_relaxed(CR1_WB_ISH, smmu->base + SMMU_CR1);
    /*
     * PTM: the VMIDs here are not the CPUs', so broadcast TLB maintenance must
     * not apply.  RECINVSID: record StreamIDs beyond the table.
     */
    writel_relaxed(CR2_PTM | CR2_RECINVSID, smmu->base + SMMU_CR2);

    rc = smmu_strtab_init(smmu, two_level, smmu_tree_last_sid(smmu->node));
    rc = rc ?: smmu_cmdq_init(smmu, cmdq_bits);
    rc = rc ?: smmu_evtq_init(smmu, evtq_bits);
    /* Errors that firmware left are not ours. */
    writel(smmu_read(smmu, SMMU_GERROR), smmu->base + SMMU_GERRORN);

    rc = rc ?: cr0_write(smmu, CR0_CMDQEN);
    rc = rc ?: smmu_self_check(smmu);
    rc = rc ?: cr0_write(smmu, CR0_CMDQEN | CR0_EVENTQEN);
    if ( rc )
        return rc;

    smmu_irq_init(smmu);
    irqs = (smmu->irq_gerror ? IRQ_CTRL_GERROR : 0) |
           (smmu->irq_evtq ? IRQ_CTRL_EVENTQ : 0);
    writel(irqs, smmu->base + SMMU_IRQ_CTRL);
    rc = reg_wait(smmu, SMMU_IRQ_CTRLACK, "IRQ_CTRLACK",
                  IRQ_CTRL_GERROR | IRQ_CTRL_EVENTQ, irqs);

    return rc ?: cr0_write(smmu, CR0_CMDQEN | CR0_EVENTQEN | CR0_SMMUEN);
}

int smmu_probe(const struct dt_device_node *node)
{
    struct smmu_device *smmu = xzalloc(struct smmu_device);
    paddr_t addr, size;
    unsigned int sidsize;
    char of[12] = "";
    int rc;

    if ( !smmu )
        return -ENOMEM;

    smmu->node = node;
    smmu->index = smmu_nr;
    spin_lock_init(&smmu->vmid_lock);
    spin_lock_init(&smmu->streams_lock);
    radix_tree_init(&smmu->streams);

    rc = dt_device_get_paddr(node, 0, &addr, &size);
    if ( !rc && size >= PAGE_SIZE )
    {
        smmu->addr = addr;
        smmu->base = ioremap_nocache(addr, PAGE_SIZE);
        if ( !smmu->base )
            return -ENOMEM;
        smmu_errata(smmu);
    }
    if ( rc || size < PAGE_SIZE ||
         (!(smmu->flags & SMMU_F_PAGE0) && size < SMMU_PAGE1 + PAGE_SIZE) )
    {
        printk(XENLOG_ERR "pviommu: %s: no registers, or fewer than 2 pages\n",
               dt_node_full_name(node));
        xfree(smmu);
        return rc ?: -ENODEV;
    }

    smmu->page1 = smmu->flags & SMMU_F_PAGE0
                  ? smmu->base : ioremap_nocache(addr + SMMU_PAGE1, PAGE_SIZE);
    if ( !smmu->page1 )
        return -ENOMEM;

    rc = smmu_init(smmu);
    if ( rc )
    {
        /*
         * Leave it aborting.  What was allocated is kept on purpose: an SMMU
         * that misbehaves may still read its queues and tables.
         */
        smmu_shutdown(smmu);
        return rc;
    }

    list_add_tail(&smmu->list, &smmu_devices);
    smmu_nr++;

    sidsize = IDR1_SIDSIZE(smmu_read(smmu, SMMU_IDR1));
    if ( sidsize > smmu->sid_bits )
        snprintf(of, sizeof(of), " (of %u)", sidsize);

    printk(XENLOG_INFO
           "pviommu: %s: %u-bit StreamIDs%s, %u-bit VMIDs, %u-bit addresses, BBML %u%s%s%s\n",
           dt_node_full_name(node), smmu->sid_bits, of, smmu->vmid_bits,
           smmu->oas, smmu->bbml,
           smmu->flags & SMMU_F_RIL ? ", range invalidation" : "",
           smmu->flags & SMMU_F_MSI ? ", syncs write memory" : "",
           smmu->flags & SMMU_F_COHERENT ? "" : ", not coherent");

    return 0;
}

struct smmu_device *smmu_by_node(const struct dt_device_node *node)
{
    struct smmu_device *smmu;

    smmu_for_each ( smmu )
        if ( smmu->node == node )
            return smmu;

    return NULL;
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
