# SPDX-License-Identifier: GPL-2.0-only
# Files of the driver that the tests of the host need.
SMMU := smmu/cmdq smmu/tlbi smmu/strtab smmu/errata smmu/cutoff smmu/tree \
	smmu/event smmu/probe
CORE := s2pt flushq foreign context endpoint fault bridge fwnode gpa domain p2m \
	viommu/mmio viommu/vring viommu/request viommu/event
