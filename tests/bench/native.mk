# SPDX-License-Identifier: GPL-2.0-only
# The benchmark of requests on the host: the driver's files as a release builds
# them, in the directory of the unit tests (make -C tests/unit -f ../bench/native.mk).

.PHONY: all
all: ../../build/unit/native/bench_native
	@:

include Makefile

NATIVE := -O2 -DNDEBUG
comma := ,
# What costs more here than in Xen: see native.c.
WRAPPED := spin_lock spin_unlock spin_is_locked fake_rmb fake_wmb fake_readl \
	fake_writel map_domain_page unmap_domain_page
$(eval $(call flavour,native,$(NATIVE)))

$(O)/native/bench_native: ../bench/native.c ../bench/peer.c Makefile \
		$(O)/native/fake.o $(O)/native/swsmmu.o \
		$(patsubst %,$(O)/native/driver/%.o,$(SMMU) $(CORE))
	@$(CC) $(CFLAGS) $(NATIVE) $(INCLUDE) $(shell pkg-config --cflags glib-2.0) \
		$(WRAPPED:%=-Wl$(comma)--wrap=%) -o $@ $(filter %.c %.o,$^) \
		-lcmocka -lpthread $(shell pkg-config --libs glib-2.0)
