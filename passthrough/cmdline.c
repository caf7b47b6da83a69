/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dom0-viommu=<bool> | List of [ <bool>, strict=<bool>, bypass=<bool> ]
 *
 * Parsed before there is a console, so what is wrong is said later.
 */

#include <xen/init.h>
#include <xen/iommu.h>
#include <xen/lib.h>
#include <xen/param.h>

#include "pviommu.h"

bool __read_mostly opt_dom0_viommu;
bool __read_mostly opt_dom0_strict = true;
bool __read_mostly opt_dom0_bypass = true;

/* What was not understood, each in quotes; it ends with ... if more was. */
static char __initdata bad_items[128];

static void __init bad_item(const char *s, size_t len)
{
    static const char more[] __initconst = "...";
    size_t have = strlen(bad_items), room = sizeof(bad_items) - have;

    if ( snprintf(bad_items + have, room, "%s\"%.*s\"", have ? ", " : "",
                  (int)len, s) >= room )
        strlcpy(bad_items + sizeof(bad_items) - sizeof(more), more,
                sizeof(more));
}

static int __init cf_check parse_dom0_viommu(const char *s)
{
    const char *ss;
    int rc = 0, val;

    opt_dom0_viommu = true;
    /* Without a value: yes. */
    if ( !*s )
        return 0;

    do {
        ss = strchr(s, ',');
        if ( !ss )
            ss = strchr(s, '\0');

        if ( (val = parse_boolean("strict", s, ss)) >= 0 )
            opt_dom0_strict = val;
        else if ( (val = parse_boolean("bypass", s, ss)) >= 0 )
            opt_dom0_bypass = val;
        else if ( (val = parse_bool(s, ss)) >= 0 )
            opt_dom0_viommu = val;
        else
        {
            bad_item(s, ss - s);
            rc = -EINVAL;
        }

        s = ss + 1;
    } while ( *ss );

    /* What is not understood must not weaken anything. */
    if ( bad_items[0] )
        opt_dom0_strict = true;

    return rc;
}
custom_param("dom0-viommu", parse_dom0_viommu);

/* Also where no SMMU is used: the IOMMUs have been set up by now. */
static int __init cf_check cmdline_report(void)
{
    if ( bad_items[0] )
        printk(XENLOG_ERR
               "pviommu: dom0-viommu: not understood: %s; allowed: <bool>, strict=<bool>, bypass=<bool>; in effect: %s,strict=1,bypass=%d\n",
               bad_items, opt_dom0_viommu ? "yes" : "no", opt_dom0_bypass);
    if ( opt_dom0_viommu && (!iommu_enabled || list_empty(&smmu_devices)) )
        printk(XENLOG_WARNING
               "pviommu: dom0-viommu: no SMMUv3 is in use, dom0 gets no virtio-iommu\n");

    return 0;
}
__initcall(cmdline_report);

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
