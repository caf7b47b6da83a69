/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Registers and in-memory formats of the SMMUv3.
 *
 * Section numbers are those of the architecture specification, Arm IHI 0070.
 * Only what the driver uses is named here.
 */
#ifndef PVIOMMU_SMMU_REGS_H
#define PVIOMMU_SMMU_REGS_H

#include <xen/const.h>

/* 6.3: registers of page 0, offsets in bytes. */
#define SMMU_IDR0               0x00
#define  IDR0_S2P               (1U << 0)
#define  IDR0_S1P               (1U << 1)
#define  IDR0_TTF(r)            (((r) >> 2) & 3)  /* bit 1: AArch64 tables */
#define  IDR0_COHACC            (1U << 4)
#define  IDR0_BTM               (1U << 5)
#define  IDR0_MSI               (1U << 13)
#define  IDR0_PRI               (1U << 16)
#define  IDR0_SEV               (1U << 14)
#define  IDR0_VMID16            (1U << 18)
#define  IDR0_TTENDIAN(r)       (((r) >> 21) & 3) /* 3: big endian only */
#define  IDR0_STALL_MODEL(r)    (((r) >> 24) & 3)
#define  IDR0_ST_LEVEL(r)       (((r) >> 27) & 3) /* 1: 2-level supported */
#define SMMU_IDR1               0x04
#define  IDR1_SIDSIZE(r)        ((r) & 0x3f)
#define  IDR1_EVENTQS(r)        (((r) >> 16) & 0x1f)
#define  IDR1_CMDQS(r)          (((r) >> 21) & 0x1f)
#define  IDR1_REL               (1U << 28)
#define  IDR1_QUEUES_PRESET     (1U << 29)
#define  IDR1_TABLES_PRESET     (1U << 30)
#define SMMU_IDR3               0x0c
#define  IDR3_RIL               (1U << 10)
#define  IDR3_BBML(r)           (((r) >> 11) & 3)
#define SMMU_IDR5               0x14
#define  IDR5_OAS(r)            ((r) & 7)
#define  IDR5_GRAN4K            (1U << 4)
#define SMMU_IIDR               0x18
#define  IIDR_IMPLEMENTER(r)    ((r) & 0xfff)
#define  IIDR_REVISION(r)       (((r) >> 12) & 0xff) /* variant, revision */
#define  IIDR_PRODUCT(r)        ((r) >> 20)
#define SMMU_CR0                0x20
#define SMMU_CR0ACK             0x24
#define  CR0_SMMUEN             (1U << 0)
#define  CR0_EVENTQEN           (1U << 2)
#define  CR0_CMDQEN             (1U << 3)
#define SMMU_CR1                0x28
#define  CR1_WB_ISH             ((3U << 10) | (1U << 8) | (1U << 6) | \
                                 (3U << 4) | (1U << 2) | (1U << 0))
#define SMMU_CR2                0x2c
#define  CR2_RECINVSID          (1U << 1)
#define  CR2_PTM                (1U << 2)
#define SMMU_GBPA               0x44
#define  GBPA_ABORT             (1U << 20)
#define  GBPA_UPDATE            (1U << 31)
#define SMMU_IRQ_CTRL           0x50
#define SMMU_IRQ_CTRLACK        0x54
#define  IRQ_CTRL_GERROR        (1U << 0)
#define  IRQ_CTRL_PRIQ          (1U << 1)
#define  IRQ_CTRL_EVENTQ        (1U << 2)
#define SMMU_GERROR             0x60
#define SMMU_GERRORN            0x64
#define  GERROR_CMDQ            (1U << 0)
#define  GERROR_EVENTQ_ABT      (1U << 2)
#define  GERROR_MSI_MASK        (0xfU << 4)
#define  GERROR_SFM             (1U << 8)
#define  GERROR_MASK            0x1ffU
#define SMMU_GERROR_IRQ_CFG0    0x68
#define SMMU_STRTAB_BASE        0x80
#define  STRTAB_BASE_RA         (1UL << 62)
#define SMMU_STRTAB_BASE_CFG    0x88
#define  STRTAB_FMT_2LVL        (1U << 16)
#define  STRTAB_SPLIT(n)        ((n) << 6)
#define SMMU_CMDQ_BASE          0x90
#define  Q_BASE_RWA             (1UL << 62)
#define SMMU_CMDQ_PROD          0x98
#define SMMU_CMDQ_CONS          0x9c
#define  CMDQ_CONS_ERR(r)       (((r) >> 24) & 0x7f)
#define   CMDQ_ERR_NONE         0
#define   CMDQ_ERR_ILL          1
#define   CMDQ_ERR_ABT          2
#define   CMDQ_ERR_ATC_SYNC     3
#define SMMU_EVENTQ_BASE        0xa0
#define SMMU_EVENTQ_IRQ_CFG0    0xb0
#define SMMU_PRIQ_IRQ_CFG0      0xd0

/* 6.2: registers of page 1, offsets from the start of page 1. */
#define SMMU_PAGE1              0x10000
#define SMMU_EVENTQ_PROD        0xa8
#define SMMU_EVENTQ_CONS        0xac
#define  EVENTQ_OVFLG           (1U << 31)

#define SMMU_ADDR_MASK          GENMASK(51, 12)

/* 4.1: commands, two 64-bit words each. */
#define CMD_WORDS               2
#define CMD_OP_CFGI_STE         0x03UL
#define CMD_OP_CFGI_ALL         0x04UL
#define CMD_OP_TLBI_S12_VMALL   0x28UL
#define CMD_OP_TLBI_S2_IPA      0x2aUL
#define CMD_OP_TLBI_NSNH_ALL    0x30UL
#define CMD_OP_SYNC             0x46UL

#define CMD_CFGI_STE_SID(s)     ((uint64_t)(s) << 32)
#define CMD_CFGI_STE_LEAF       1UL
#define CMD_CFGI_ALL_RANGE      31UL
#define CMD_TLBI_VMID(v)        ((uint64_t)(v) << 32)
#define CMD_TLBI_NUM(n)         ((uint64_t)(n) << 12)
#define CMD_TLBI_SCALE(s)       ((uint64_t)(s) << 20)
#define CMD_TLBI_LEAF           1UL
#define CMD_TLBI_TTL(t)         ((uint64_t)(t) << 8)
#define CMD_TLBI_TG_4K          (1UL << 10)
#define CMD_SYNC_CS_NONE        (0UL << 12)
#define CMD_SYNC_CS_MSI         (1UL << 12)
#define CMD_SYNC_MSH_ISH        (3UL << 22)
#define CMD_SYNC_MSIATTR_WB     (0xfUL << 24)
#define CMD_SYNC_MSIDATA(d)     ((uint64_t)(d) << 32)

/* 5.1: level 1 stream table descriptor. */
#define L1STD_SPAN(n)           ((uint64_t)(n))
#define L1STD_L2PTR_MASK        GENMASK(51, 6)

/* 5.2: stream table entry, eight 64-bit words. */
#define STE_WORDS               8
#define STE0_V                  1UL
#define STE0_CFG_ABORT          (0UL << 1)
#define STE0_CFG_S2             (6UL << 1)
#define STE0_CFG_MASK           (7UL << 1)
#define STE1_SHCFG_INCOMING     (1UL << 44)
#define STE2_S2VMID(v)          ((uint64_t)(v))
#define STE2_S2T0SZ(v)          ((uint64_t)(v) << 32)
#define STE2_S2SL0(v)           ((uint64_t)(v) << 38)
#define STE2_S2IR0_WBWA         (1UL << 40)
#define STE2_S2OR0_WBWA         (1UL << 42)
#define STE2_S2SH0_ISH          (3UL << 44)
#define STE2_S2TG_4K            (0UL << 46)
#define STE2_S2PS(v)            ((uint64_t)(v) << 48)
#define STE2_S2AA64             (1UL << 51)
#define STE2_S2AFFD             (1UL << 53)
#define STE2_S2R                (1UL << 58)
#define STE3_S2TTB_MASK         GENMASK(51, 4)

/* 7.3: event records, four 64-bit words each. */
#define EVT_WORDS               4
#define EVT_ID(w)               ((w)[0] & 0xff)
#define EVT_SID(w)              ((uint32_t)((w)[0] >> 32))
#define EVT_RNW                 (1UL << 35)  /* word 1: read, not write */
#define EVT_IND                 (1UL << 34)  /* word 1: instruction */
#define EVT_F_UUT               0x01
#define EVT_C_BAD_STREAMID      0x02
#define EVT_F_STE_FETCH         0x03
#define EVT_C_BAD_STE           0x04
#define EVT_F_BAD_ATS_TREQ      0x05
#define EVT_F_STREAM_DISABLED   0x06
#define EVT_F_TRANSL_FORBIDDEN  0x07
#define EVT_C_BAD_SUBSTREAMID   0x08
#define EVT_F_CD_FETCH          0x09
#define EVT_C_BAD_CD            0x0a
#define EVT_F_WALK_EABT         0x0b
#define EVT_F_TRANSLATION       0x10
#define EVT_F_ADDR_SIZE         0x11
#define EVT_F_ACCESS            0x12
#define EVT_F_PERMISSION        0x13
#define EVT_F_TLB_CONFLICT      0x20
#define EVT_F_CFG_CONFLICT      0x21
#define EVT_E_PAGE_REQUEST      0x24
#define EVT_F_VMS_FETCH         0x25
#define EVT_FETCH_MASK          GENMASK(51, 3)  /* word 3: what was fetched */

#endif /* PVIOMMU_SMMU_REGS_H */
