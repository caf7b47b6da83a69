# SPDX-License-Identifier: GPL-2.0-only
# The command queue's benchmark: the driver's files, built as for the unit
# tests, in whose directory this runs (make -C tests/unit -f ../bench/cmdq.mk).
#
#   bench_cmdq          optimised, to measure
#   bench_cmdq_tsan     with the thread sanitizer, to be right

.PHONY: all
all: $(addprefix ../../build/unit/,opt/bench_cmdq tsan/bench_cmdq)
	@:

include Makefile

OPT := -O2
$(eval $(call flavour,opt,$(OPT)))

define bench
$(O)/$(1)/bench/%.o: ../bench/%.c Makefile | $(HEADERS)
	@mkdir -p $$(@D)
	@$(CC) $(CFLAGS) $(2) $$(INCLUDE) -MMD -MP -c -o $$@ $$<
$(O)/$(1)/bench_cmdq: $(O)/$(1)/bench/cmdq.o $(O)/$(1)/fake.o \
		$(O)/$(1)/swsmmu.o $$(SMMU:%=$(O)/$(1)/driver/%.o)
	@$(CC) $(2) -Wl,$(3)--wrap=fake_readl,--wrap=fake_writel -o $$@ $$^ \
		-lcmocka -lpthread
endef
$(eval $(call bench,opt,$(OPT),))
comma := ,
$(eval $(call bench,tsan,$(TSAN),--wrap=fake_wmb$(comma)))
