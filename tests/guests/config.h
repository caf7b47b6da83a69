/* SPDX-License-Identifier: GPL-2.0-only */
/* Sizes that C and assembly share. */
#ifndef CONFIG_H
#define CONFIG_H

#define MAX_CPUS    8
#define STACK_SIZE  16384

#endif /* CONFIG_H */
