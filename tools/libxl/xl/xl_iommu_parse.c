/* SPDX-License-Identifier: LGPL-2.1-only */
/* See xl_iommu_parse.h. */

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "xl_iommu_parse.h"

#define KEYS        "type, strict, bypass, pool"
#define TYPES       "none, virtio"
#define BOOLS       "0, 1, false, true, off, on, no, yes"
#define SIZES       "a number with K, M or G, from 64K to 4096G"

/* A piece of the text; not terminated. */
struct piece {
    const char *s;
    int len;
};

/* For printf: "%.*s"; what is long is cut in messages. */
#define MAX_SHOWN   40
#define SHOW(p)     ((p).len > MAX_SHOWN ? MAX_SHOWN : (p).len), (p).s

static struct piece trim(struct piece p)
{
    while (p.len && (*p.s == ' ' || *p.s == '\t')) {
        p.s++;
        p.len--;
    }
    while (p.len && (p.s[p.len - 1] == ' ' || p.s[p.len - 1] == '\t'))
        p.len--;

    return p;
}

static bool equal(struct piece p, const char *word)
{
    return p.len == (int)strlen(word) && !strncasecmp(p.s, word, p.len);
}

static int parse_type(struct piece v)
{
    return equal(v, "none") ? XL_IOMMU_NONE :
           equal(v, "virtio") ? XL_IOMMU_VIRTIO : -1;
}

static int parse_bool(struct piece v)
{
    static const char *const words[][2] = {
        { "0", "1" }, { "false", "true" }, { "off", "on" }, { "no", "yes" },
    };
    unsigned int i;

    for (i = 0; i < 4; i++) {
        if (equal(v, words[i][0])) return 0;
        if (equal(v, words[i][1])) return 1;
    }

    return -1;
}

/* In KiB; 0: not a size. */
static uint64_t parse_size(struct piece v)
{
    uint64_t n = 0, unit;
    int i;

    if (v.len < 2) return 0;

    switch (v.s[v.len - 1]) {
    case 'k': case 'K': unit = 1; break;
    case 'm': case 'M': unit = 1 << 10; break;
    case 'g': case 'G': unit = 1 << 20; break;
    default: return 0;
    }

    for (i = 0; i < v.len - 1; i++) {
        if (v.s[i] < '0' || v.s[i] > '9') return 0;
        n = n * 10 + (v.s[i] - '0');
        if (n > XL_IOMMU_POOL_MAX) return 0;
    }
    n *= unit;

    return n < XL_IOMMU_POOL_MIN || n > XL_IOMMU_POOL_MAX ? 0 : n;
}

struct message {
    char *buf;
    size_t size;
};

static int bad_value(const struct message *m, const char *key, struct piece v,
                     const char *allowed)
{
    snprintf(m->buf, m->size, "iommu: %s: \"%.*s\" is not understood; "
             "allowed: %s", key, SHOW(v), allowed);
    return -1;
}

static int twice(const struct message *m, const char *key)
{
    snprintf(m->buf, m->size, "iommu: %s is given twice", key);
    return -1;
}

static int set_type(struct xl_iommu_option *opt, struct piece v,
                    const struct message *m)
{
    if (opt->type != XL_IOMMU_UNSET) return twice(m, "type");
    opt->type = parse_type(v);
    return opt->type < 0 ? bad_value(m, "type", v, TYPES) : 0;
}

static int set_bool(int *flag, const char *key, struct piece v,
                    const struct message *m)
{
    if (*flag != XL_IOMMU_UNSET) return twice(m, key);
    *flag = parse_bool(v);
    return *flag < 0 ? bad_value(m, key, v, BOOLS) : 0;
}

static int set_pool(struct xl_iommu_option *opt, struct piece v,
                    const struct message *m)
{
    if (opt->pool_kb) return twice(m, "pool");
    opt->pool_kb = parse_size(v);
    return opt->pool_kb ? 0 : bad_value(m, "pool", v, SIZES);
}

static int set_item(struct xl_iommu_option *opt, struct piece item,
                    const struct message *m)
{
    const char *eq = memchr(item.s, '=', item.len);
    struct piece k, v;

    if (!eq) {
        if (parse_type(item) >= 0) return set_type(opt, item, m);
        snprintf(m->buf, m->size, "iommu: \"%.*s\" is not KEY=VALUE; "
                 "allowed keys: " KEYS "; or just: " TYPES, SHOW(item));
        return -1;
    }

    k.s = item.s;
    k.len = eq - item.s;
    v.s = eq + 1;
    v.len = item.len - k.len - 1;
    k = trim(k);
    v = trim(v);

    if (equal(k, "type")) return set_type(opt, v, m);
    if (equal(k, "strict")) return set_bool(&opt->strict, "strict", v, m);
    if (equal(k, "bypass")) return set_bool(&opt->bypass, "bypass", v, m);
    if (equal(k, "pool")) return set_pool(opt, v, m);

    snprintf(m->buf, m->size, "iommu: unknown key \"%.*s\" (value \"%.*s\"); "
             "allowed keys: " KEYS, SHOW(k), SHOW(v));
    return -1;
}

int xl_iommu_parse(const char *text, struct xl_iommu_option *opt,
                   char *err, size_t size)
{
    const struct message m = { err, size };

    opt->type = opt->strict = opt->bypass = XL_IOMMU_UNSET;
    opt->pool_kb = 0;

    for (;;) {
        struct piece item = { text, strcspn(text, ",") };

        if (set_item(opt, trim(item), &m)) return -1;
        text += item.len;
        if (!*text) return 0;
        text++;
    }
}
