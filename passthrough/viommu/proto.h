/* SPDX-License-Identifier: MIT */
/* Constants, layouts of virtio 1.2: split ring (2.7), IOMMU device (5.13). */
#ifndef PVIOMMU_PROTO_H
#define PVIOMMU_PROTO_H

#define VIRTIO_ID_IOMMU                 23

#define VIRTIO_F_INDIRECT_DESC          28
#define VIRTIO_F_EVENT_IDX              29
#define VIRTIO_F_VERSION_1              32

#define VIRTIO_STATUS_ACKNOWLEDGE       1
#define VIRTIO_STATUS_DRIVER            2
#define VIRTIO_STATUS_DRIVER_OK         4
#define VIRTIO_STATUS_FEATURES_OK       8
#define VIRTIO_STATUS_NEEDS_RESET       64
#define VIRTIO_STATUS_FAILED            128

#define VIOMMU_F_INPUT_RANGE            0
#define VIOMMU_F_DOMAIN_RANGE           1
#define VIOMMU_F_MAP_UNMAP              2
#define VIOMMU_F_PROBE                  4
#define VIOMMU_F_MMIO                   5
#define VIOMMU_F_BYPASS_CONFIG          6

#define VIOMMU_T_ATTACH                 1
#define VIOMMU_T_DETACH                 2
#define VIOMMU_T_MAP                    3
#define VIOMMU_T_UNMAP                  4
#define VIOMMU_T_PROBE                  5

#define VIOMMU_S_OK                     0
#define VIOMMU_S_IOERR                  1
#define VIOMMU_S_UNSUPP                 2
#define VIOMMU_S_DEVERR                 3
#define VIOMMU_S_INVAL                  4
#define VIOMMU_S_RANGE                  5
#define VIOMMU_S_NOENT                  6
#define VIOMMU_S_FAULT                  7
#define VIOMMU_S_NOMEM                  8

#define VIOMMU_ATTACH_F_BYPASS          1
#define VIOMMU_MAP_F_READ               1
#define VIOMMU_MAP_F_WRITE              2
#define VIOMMU_MAP_F_MMIO               4

#define VIOMMU_FAULT_R_UNKNOWN          0
#define VIOMMU_FAULT_R_DOMAIN           1
#define VIOMMU_FAULT_R_MAPPING          2
#define VIOMMU_FAULT_F_READ             1
#define VIOMMU_FAULT_F_WRITE            2
#define VIOMMU_FAULT_F_EXEC             4
#define VIOMMU_FAULT_F_ADDRESS          0x100

#define VRING_DESC_F_NEXT               1
#define VRING_DESC_F_WRITE              2
#define VRING_DESC_F_INDIRECT           4
#define VRING_AVAIL_F_NO_INTERRUPT      1

struct vring_desc {
    uint64_t addr;
    uint32_t len;
    uint16_t flags;
    uint16_t next;
};

struct vring_used_elem {
    uint32_t id;
    uint32_t len;
};

/* Requests: 5.13.6.  Fields are little endian, as all of arm64 Xen is. */
struct viommu_req_attach {
    uint8_t type, reserved0[3];
    uint32_t domain, endpoint, flags;
    uint8_t reserved[4];
} __attribute__((__packed__));

struct viommu_req_detach {
    uint8_t type, reserved0[3];
    uint32_t domain, endpoint;
    uint8_t reserved[8];
} __attribute__((__packed__));

struct viommu_req_map {
    uint8_t type, reserved0[3];
    uint32_t domain;
    uint64_t virt_start, virt_end, phys_start;
    uint32_t flags;
} __attribute__((__packed__));

struct viommu_req_unmap {
    uint8_t type, reserved0[3];
    uint32_t domain;
    uint64_t virt_start, virt_end;
    uint8_t reserved[4];
} __attribute__((__packed__));

struct viommu_req_probe {
    uint8_t type, reserved0[3];
    uint32_t endpoint;
    uint8_t reserved[64];
} __attribute__((__packed__));

struct viommu_req_tail {
    uint8_t status, reserved[3];
} __attribute__((__packed__));

struct viommu_fault {
    uint8_t reason, reserved[3];
    uint32_t flags, endpoint;
    uint8_t reserved2[4];
    uint64_t address;
} __attribute__((__packed__));

/* Configuration space: 5.13.4. */
struct viommu_config {
    uint64_t page_size_mask;
    uint64_t input_start, input_end;
    uint32_t domain_start, domain_end;
    uint32_t probe_size;
    uint8_t bypass, reserved[3];
} __attribute__((__packed__));

#endif /* PVIOMMU_PROTO_H */
