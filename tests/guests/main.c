/* SPDX-License-Identifier: GPL-2.0-only */
/* Run the suites that the command line names: suite=NAME[,NAME...] */

#include <libfdt.h>

#include "guest.h"

extern const struct suite *const suites[];

void main(const void *fdt);
void main(const void *fdt)
{
    unsigned int i, ran = 0;

    if ( fdt_check_header(fdt) )
        bail("no device tree at %#lx", (uint64_t)fdt);
    tree_read(fdt);
    memory_mark((uint64_t)fdt, fdt_totalsize(fdt));
    machine_init();

    print("# guest: %u CPUs, %u banks of memory, command line: %s\n",
          nr_cpus, tree.nr_memory, cmdline);
    for ( i = 0; i < tree.nr_memory; i++ )
        print("# memory %#lx + %#lx\n", tree.memory[i].base,
              tree.memory[i].size);

    for ( i = 0; suites[i]; i++ )
        if ( option_has("suite", suites[i]->name) )
        {
            print("# suite %s\n", suites[i]->name);
            suites[i]->run();
            ran++;
        }
    if ( !ran )
        bail("the command line names no suite that there is");
    plan();

    /* Xen's console still has the counters to show. */
    if ( !tree.xen )
        power_off();
    for ( ; ; )
        asm volatile ( "wfi" );
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
