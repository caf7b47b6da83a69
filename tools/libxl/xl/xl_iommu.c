/* SPDX-License-Identifier: LGPL-2.1-only */
/* `iommu` in xl.cfg, xl iommu-info, xl iommu-strict. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <libxl.h>
#include <libxl_json.h>
#include <libxl_utils.h>
#include <libxlutil.h>

#include "xl.h"
#include "xl_iommu.h"
#include "xl_iommu_parse.h"
#include "xl_utils.h"

/* Longest message of xl_iommu_parse(): two shown pieces and a list. */
#define MESSAGE_SIZE    256

static void set_flag(libxl_defbool *flag, int value)
{
    if (value != XL_IOMMU_UNSET)
        libxl_defbool_set(flag, value);
}

void parse_iommu(XLU_Config *config, libxl_domain_build_info *b_info)
{
    struct xl_iommu_option opt;
    char message[MESSAGE_SIZE];
    const char *text;
    int e = xlu_cfg_get_string(config, "iommu", &text, 0);

    if (e == ESRCH)
        return;
    if (e) {
        fprintf(stderr, "iommu: must be one string, as in "
                "iommu = \"type=virtio,strict=0\"\n");
        exit(-ERROR_FAIL);
    }

    if (xl_iommu_parse(text, &opt, message, sizeof(message))) {
        fprintf(stderr, "%s\n", message);
        exit(-ERROR_FAIL);
    }

    if (opt.type == XL_IOMMU_VIRTIO)
        b_info->arch_arm.iommu.type = LIBXL_IOMMU_TYPE_VIRTIO;
    set_flag(&b_info->arch_arm.iommu.strict, opt.strict);
    set_flag(&b_info->arch_arm.iommu.bypass, opt.bypass);
    if (opt.pool_kb)
        b_info->arch_arm.iommu.pool_memkb = opt.pool_kb;
}

/* Fields of libxl_iommu_counters, one output line each row. */
#define COUNTERS_1(X) \
    X(kicks) X(req_attach) X(req_detach) X(req_map) X(req_unmap) X(req_probe) \
    X(req_bad)
#define COUNTERS_2(X) \
    X(pages) X(tables) X(ranges) X(pending) X(pinned) X(revived) X(revoked)
#define COUNTERS_3(X) \
    X(tlbi) X(sync) X(faults) X(faults_dropped) X(cutoffs) X(errors)
#define COUNTERS_4(X) \
    X(flush_strict) X(flush_count) X(flush_pages) X(flush_age) \
    X(flush_overlap) X(flush_memory) X(flush_detach) X(flush_switch) \
    X(flush_destroy) X(flush_config) X(flush_p2m) X(flush_early)
/* And of libxl_smmuinfo. */
#define SMMU_COUNTERS_1(X) X(tlbi) X(sync) X(cfgi)
#define SMMU_COUNTERS_2(X) \
    X(cmdq_ill) X(cmdq_abt) X(cmdq_atc) X(cmdq_timeout) X(cmdq_full) X(gerror)
#define SMMU_COUNTERS_3(X) \
    X(events) X(event_overflow) X(event_unknown) X(event_cutoff) \
    X(event_no_cutoff) X(event_sync) X(event_dropped) X(event_throttled)

static const char *kind_of(const libxl_iommu_endpoint *ep)
{
    const char *kind = libxl_iommu_endpoint_kind_to_string(ep->kind);

    return kind ? kind : "unknown";
}

static void print_endpoint(const libxl_iommu_endpoint *ep)
{
    printf("    endpoint %#x", ep->id);
    if (ep->nr_ids > 1)
        printf("-%#x", ep->id + ep->nr_ids - 1);
    printf(" %s smmu%u stream %#x", kind_of(ep), ep->smmu, ep->sid);
    if (ep->nr_sids > 1)
        printf(" and %u more", ep->nr_sids - 1);
    if (ep->attached)
        printf(" context %u", ep->context);
    else
        printf(" not attached");
    printf("%s\n", ep->present ? "" : " (removed)");
}

static void print_domain(const libxl_iommuinfo *info)
{
    const libxl_iommu_counters *c = &info->counters;
    char *name = libxl_domid_to_name(ctx, info->domid);
    int i;

    printf("%s (domain %u): type=%s strict=%d bypass=%d", name ? name : "?",
           info->domid, libxl_iommu_type_to_string(info->type), info->strict,
           info->bypass);
    free(name);
    if (info->type == LIBXL_IOMMU_TYPE_VIRTIO)
        printf(" registers=%#"PRIx64" irq=%u", info->mmio_base, info->irq);
    printf("%s\n", info->broken ? " BROKEN: an SMMU did not answer, its devices"
                                  " are cut off" : "");

    for (i = 0; i < info->num_endpoints; i++)
        print_endpoint(&info->endpoints[i]);
    for (i = 0; i < info->num_contexts; i++)
        printf("    context %u endpoints=%u bypass=%d pages=%"PRIu64
               " tables=%"PRIu64"\n",
               info->contexts[i].id, info->contexts[i].nr_endpoints,
               info->contexts[i].bypass, info->contexts[i].pages,
               info->contexts[i].tables);

#define SHOW(field) printf(" " #field "=%"PRIu64, c->field);
    printf("   "); COUNTERS_1(SHOW) printf("\n");
    printf("   "); COUNTERS_2(SHOW) printf("\n");
    printf("   "); COUNTERS_3(SHOW) printf("\n");
    printf("   "); COUNTERS_4(SHOW) printf("\n");
#undef SHOW
}

static void print_smmu(const libxl_smmuinfo *s)
{
#define SHOW(field) printf(" " #field "=%"PRIu64, s->field);
    printf("smmu%u at %#"PRIx64"%s\n", s->index, s->base,
           s->dead ? " DEAD: it does not answer" : "");
    printf("   "); SMMU_COUNTERS_1(SHOW) printf("\n");
    printf("   "); SMMU_COUNTERS_2(SHOW) printf("\n");
    printf("   "); SMMU_COUNTERS_3(SHOW) printf("\n");
#undef SHOW
}

/*
 * JSON, written here and not by libxl's generator: that leaves out what is 0,
 * and who reads counters wants all of them.  An error sticks in the generator,
 * so it is only looked for at the end.
 */
static void put_string(yajl_gen hand, const char *s)
{
    yajl_gen_string(hand, (const unsigned char *)s, strlen(s));
}

static void put_number(yajl_gen hand, const char *key, uint64_t value)
{
    char s[24];
    int len = snprintf(s, sizeof(s), "%"PRIu64, value);

    put_string(hand, key);
    yajl_gen_number(hand, s, len);
}

static void put_flag(yajl_gen hand, const char *key, bool value)
{
    put_string(hand, key);
    yajl_gen_bool(hand, value);
}

static void put_endpoint(yajl_gen hand, const libxl_iommu_endpoint *ep)
{
    yajl_gen_map_open(hand);
    put_number(hand, "id", ep->id);
    put_number(hand, "nr_ids", ep->nr_ids);
    put_string(hand, "kind");
    put_string(hand, kind_of(ep));
    put_flag(hand, "present", ep->present);
    put_string(hand, "context");
    if (ep->attached)
        yajl_gen_integer(hand, ep->context);
    else
        yajl_gen_null(hand);
    put_number(hand, "smmu", ep->smmu);
    put_number(hand, "sid", ep->sid);
    put_number(hand, "nr_sids", ep->nr_sids);
    yajl_gen_map_close(hand);
}

static void put_context(yajl_gen hand, const libxl_iommu_context *c)
{
    yajl_gen_map_open(hand);
    put_number(hand, "id", c->id);
    put_number(hand, "nr_endpoints", c->nr_endpoints);
    put_flag(hand, "bypass", c->bypass);
    put_number(hand, "pages", c->pages);
    put_number(hand, "tables", c->tables);
    yajl_gen_map_close(hand);
}

static void put_domain(yajl_gen hand, const libxl_iommuinfo *info)
{
    const libxl_iommu_counters *c = &info->counters;
    int i;

    yajl_gen_map_open(hand);
    put_number(hand, "domid", info->domid);
    put_string(hand, "type");
    put_string(hand, libxl_iommu_type_to_string(info->type));
    put_flag(hand, "strict", info->strict);
    put_flag(hand, "bypass", info->bypass);
    put_flag(hand, "broken", info->broken);
    put_number(hand, "mmio_base", info->mmio_base);
    put_number(hand, "irq", info->irq);

    put_string(hand, "endpoints");
    yajl_gen_array_open(hand);
    for (i = 0; i < info->num_endpoints; i++)
        put_endpoint(hand, &info->endpoints[i]);
    yajl_gen_array_close(hand);

    put_string(hand, "contexts");
    yajl_gen_array_open(hand);
    for (i = 0; i < info->num_contexts; i++)
        put_context(hand, &info->contexts[i]);
    yajl_gen_array_close(hand);

    put_string(hand, "counters");
    yajl_gen_map_open(hand);
#define PUT(field) put_number(hand, #field, c->field);
    COUNTERS_1(PUT) COUNTERS_2(PUT) COUNTERS_3(PUT) COUNTERS_4(PUT)
#undef PUT
    yajl_gen_map_close(hand);
    yajl_gen_map_close(hand);
}

static void put_smmu(yajl_gen hand, const libxl_smmuinfo *s)
{
    yajl_gen_map_open(hand);
    put_number(hand, "index", s->index);
    put_number(hand, "base", s->base);
    put_flag(hand, "dead", s->dead);
    put_string(hand, "counters");
    yajl_gen_map_open(hand);
#define PUT(field) put_number(hand, #field, s->field);
    SMMU_COUNTERS_1(PUT) SMMU_COUNTERS_2(PUT) SMMU_COUNTERS_3(PUT)
#undef PUT
    yajl_gen_map_close(hand);
    yajl_gen_map_close(hand);
}

/* One object: { "domains": [...], "smmus": [...] }. */
static int print_json(const libxl_iommuinfo *infos, int nr_infos,
                      const libxl_smmuinfo *smmus, int nr_smmus)
{
    yajl_gen hand = libxl_yajl_gen_alloc(NULL);
    const unsigned char *buf;
    libxl_yajl_length len;
    int i, rc = EXIT_FAILURE;

    if (!hand) {
        fprintf(stderr, "out of memory\n");
        return EXIT_FAILURE;
    }

    yajl_gen_map_open(hand);
    put_string(hand, "domains");
    yajl_gen_array_open(hand);
    for (i = 0; i < nr_infos; i++)
        put_domain(hand, &infos[i]);
    yajl_gen_array_close(hand);
    put_string(hand, "smmus");
    yajl_gen_array_open(hand);
    for (i = 0; i < nr_smmus; i++)
        put_smmu(hand, &smmus[i]);
    yajl_gen_array_close(hand);

    if (yajl_gen_map_close(hand) != yajl_gen_status_ok ||
        yajl_gen_get_buf(hand, &buf, &len) != yajl_gen_status_ok)
        fprintf(stderr, "unable to format the JSON output\n");
    else {
        fwrite(buf, len, 1, stdout);
        rc = EXIT_SUCCESS;
    }
    yajl_gen_free(hand);

    return rc;
}

/*
 * The domain by id or name, told if there is none.  Ids are looked at first:
 * what doesn't fit into Xen's 16 bits would be another domain's.
 */
static bool find_existing(const char *name, uint32_t *domid)
{
    char *end;
    unsigned long long n = strtoull(name, &end, 10);
    libxl_dominfo info;
    bool found = false;

    if (*name && (*end || !n || (n <= UINT32_MAX && libxl_domid_valid_guest(n)))) {
        *domid = find_domain(name);
        libxl_dominfo_init(&info);
        found = !libxl_domain_info(ctx, &info, *domid) &&
                info.domid == *domid;
        libxl_dominfo_dispose(&info);
    }
    if (!found)
        fprintf(stderr, "\"%s\": no such domain\n", name);

    return found;
}

/* Fill infos[] with one domain, or with all that have an IOMMU. */
static int get_infos(const char *domain, libxl_iommuinfo **infos, int *nr)
{
    libxl_dominfo *list;
    int i, rc, nr_domains;

    if (domain) {
        uint32_t domid;

        if (!find_existing(domain, &domid))
            return ERROR_DOMAIN_NOTFOUND;
        *infos = xmalloc(sizeof(**infos));
        rc = libxl_iommu_info(ctx, domid, *infos);
        if (rc == ERROR_NOTFOUND)
            fprintf(stderr, "%s: the domain has no IOMMU: nothing is passed "
                    "through to it, or Xen uses none\n", domain);
        *nr = !rc;
        return rc;
    }

    list = libxl_list_domain(ctx, &nr_domains);
    if (!list) {
        fprintf(stderr, "libxl_list_domain failed\n");
        return ERROR_FAIL;
    }

    *infos = xcalloc(nr_domains, sizeof(**infos));
    *nr = 0;
    for (i = rc = 0; i < nr_domains; i++) {
        rc = libxl_iommu_info(ctx, list[i].domid, *infos + *nr);
        if (!rc)
            ++*nr;
        else if (rc == ERROR_NOTFOUND || rc == ERROR_DOMAIN_NOTFOUND)
            rc = 0;     /* without an IOMMU, or gone meanwhile */
        else
            break;
    }
    libxl_dominfo_list_free(list, nr_domains);

    return rc;
}

int main_iommu_info(int argc, char **argv)
{
    libxl_iommuinfo *infos = NULL;
    libxl_smmuinfo *smmus = NULL;
    int opt, i, nr_infos = 0, nr_smmus = 0, rc;
    bool json = false;
    static const struct option opts[] = {
        { "json", 0, 0, 'j' },
        COMMON_LONG_OPTS
    };

    SWITCH_FOREACH_OPT(opt, "j", opts, "iommu-info", 0) {
    case 'j':
        json = true;
        break;
    }

    if (argc - optind > 1) {
        help("iommu-info");
        return EXIT_FAILURE;
    }

    rc = get_infos(argv[optind], &infos, &nr_infos);
    if (!rc)
        rc = libxl_list_smmu(ctx, &smmus, &nr_smmus);

    if (rc)
        rc = EXIT_FAILURE;
    else if (json)
        rc = print_json(infos, nr_infos, smmus, nr_smmus);
    else {
        for (i = 0; i < nr_infos; i++)
            print_domain(&infos[i]);
        for (i = 0; i < nr_smmus; i++)
            print_smmu(&smmus[i]);
    }

    for (i = 0; i < nr_infos; i++)
        libxl_iommuinfo_dispose(&infos[i]);
    free(infos);
    libxl_smmuinfo_list_free(smmus, nr_smmus);

    return rc;
}

int main_iommu_strict(int argc, char **argv)
{
    uint32_t domid;
    bool strict;
    int opt;

    SWITCH_FOREACH_OPT(opt, "", NULL, "iommu-strict", 2) {
        /* No options */
    }

    if (argc - optind > 2) {
        help("iommu-strict");
        return EXIT_FAILURE;
    }

    if (!strcasecmp(argv[optind + 1], "on"))
        strict = true;
    else if (!strcasecmp(argv[optind + 1], "off"))
        strict = false;
    else {
        fprintf(stderr, "iommu-strict: \"%s\" is not understood; allowed: on, "
                "off\n", argv[optind + 1]);
        return EXIT_FAILURE;
    }

    if (!find_existing(argv[optind], &domid))
        return EXIT_FAILURE;

    return libxl_iommu_set_strict(ctx, domid, strict) ? EXIT_FAILURE
                                                      : EXIT_SUCCESS;
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
