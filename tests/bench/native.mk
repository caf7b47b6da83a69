# SPDX-License-Identifier: GPL-2.0-only
# The benchmark of requests on the host: the driver's files as a release builds
# them, in the directory of the unit tests (make -C tests/unit -f ../bench/native.mk).

.PHONY: all
all: ../../build/unit/native/bench_native
	@:

include Makefile

NATIVE := -O2 -DNDEBUG -fomit-frame-pointer -mstringop-strategy=libcall
comma := ,
$(eval $(call flavour,native,$(NATIVE)))
$(O)/native/driver/%.o: INCLUDE += -DFAKE_NATIVE

$(O)/native/bench_native: ../bench/native.c ../bench/peer.c ../bench/peer.h \
		../bench/native.h Makefile $(O)/native/fake.o \
		$(O)/native/swsmmu.o \
		$(patsubst %,$(O)/native/driver/%.o,$(SMMU) $(CORE))
	@$(CC) $(CFLAGS) $(NATIVE) $(INCLUDE) $(shell pkg-config --cflags glib-2.0) \
		-Wl,--wrap=fake_readl$(comma)--wrap=fake_writel -o $@ \
		$(filter %.c %.o,$^) -lcmocka -lpthread \
		$(shell pkg-config --libs glib-2.0)
