/* SPDX-License-Identifier: GPL-2.0-only */
/* What the compiler and libfdt want of a C library, and print(). */

#include <stdlib.h>

#include "guest.h"

void *memcpy(void *to, const void *from, size_t n)
{
    char *t = to;
    const char *f = from;

    if ( !(((uintptr_t)t | (uintptr_t)f) & 7) )
        for ( ; n >= 8; n -= 8, t += 8, f += 8 )
            *(uint64_t *)t = *(const uint64_t *)f;
    while ( n-- )
        *t++ = *f++;

    return to;
}

void *memmove(void *to, const void *from, size_t n)
{
    char *t = to;
    const char *f = from;

    if ( t <= f || t >= f + n )
        return memcpy(to, from, n);
    while ( n-- )
        t[n] = f[n];

    return to;
}

void *memset(void *p, int c, size_t n)
{
    unsigned char *t = p;
    uint64_t w = 0x0101010101010101UL * (unsigned char)c;

    if ( !((uintptr_t)t & 7) )
        for ( ; n >= 8; n -= 8, t += 8 )
            *(uint64_t *)t = w;
    while ( n-- )
        *t++ = c;

    return p;
}

int memcmp(const void *a, const void *b, size_t n)
{
    const unsigned char *x = a, *y = b;

    for ( ; n; n--, x++, y++ )
        if ( *x != *y )
            return *x - *y;

    return 0;
}

void *memchr(const void *p, int c, size_t n)
{
    const unsigned char *s = p;

    for ( ; n; n--, s++ )
        if ( *s == (unsigned char)c )
            return (void *)s;

    return NULL;
}

size_t strnlen(const char *s, size_t max)
{
    size_t n = 0;

    while ( n < max && s[n] )
        n++;

    return n;
}

size_t strlen(const char *s)
{
    return strnlen(s, SIZE_MAX);
}

int strncmp(const char *a, const char *b, size_t n)
{
    for ( ; n; n--, a++, b++ )
        if ( *a != *b || !*a )
            return (unsigned char)*a - (unsigned char)*b;

    return 0;
}

int strcmp(const char *a, const char *b)
{
    return strncmp(a, b, SIZE_MAX);
}

char *strchr(const char *s, int c)
{
    for ( ; *s != (char)c; s++ )
        if ( !*s )
            return NULL;

    return (char *)s;
}

char *strrchr(const char *s, int c)
{
    const char *found = NULL;

    for ( ; (s = strchr(s, c)); s++ )
    {
        found = s;
        if ( !c )
            break;
    }

    return (char *)found;
}

unsigned long strtoul(const char *s, char **end, int base)
{
    unsigned long n = 0;

    if ( (!base || base == 16) && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') )
    {
        s += 2;
        base = 16;
    }
    if ( !base )
        base = 10;
    for ( ; ; s++ )
    {
        int digit = *s >= '0' && *s <= '9' ? *s - '0' :
                    *s >= 'a' && *s <= 'z' ? *s - 'a' + 10 :
                    *s >= 'A' && *s <= 'Z' ? *s - 'A' + 10 : 99;

        if ( digit >= base )
            break;
        n = n * base + digit;
    }
    if ( end )
        *end = (char *)s;

    return n;
}

uint64_t parse_number(const char *s)
{
    return strtoul(s, NULL, 0);
}

/* libfdt of the distribution is built with the stack protector. */
uintptr_t __stack_chk_guard = 0x00000aff0a0d0000;

void __stack_chk_fail(void);
void __stack_chk_fail(void)
{
    bail("stack overflow in libfdt");
}

struct out { char *p, *end; };

static void put(struct out *o, char c)
{
    if ( o->p < o->end )
        *o->p++ = c;
}

static void put_number(struct out *o, uint64_t v, unsigned int base,
                       unsigned int width, char pad)
{
    char digits[20];
    unsigned int n = 0;

    do {
        digits[n++] = "0123456789abcdef"[v % base];
        v /= base;
    } while ( v );
    for ( ; width > n; width-- )
        put(o, pad);
    while ( n )
        put(o, digits[--n]);
}

/* Of printf: %c %s %d %u %x with width, 0, # and l; no more. */
static const char *conversion(struct out *o, const char *f, va_list *args)
{
    char pad = ' ';
    unsigned int width = 0;
    bool wide = false, alt = false;
    uint64_t v;

    for ( ; *f == '#' || *f == '0'; f++ )
    {
        alt |= *f == '#';
        if ( *f == '0' )
            pad = '0';
    }
    for ( ; *f >= '0' && *f <= '9'; f++ )
        width = width * 10 + *f - '0';
    for ( ; *f == 'l' || *f == 'z'; f++ )
        wide = true;

    switch ( *f )
    {
    case 'c':
        put(o, va_arg(*args, int));
        break;

    case 's':
    {
        const char *s = va_arg(*args, const char *);

        for ( ; *s; s++, width -= !!width )
            put(o, *s);
        for ( ; width; width-- )
            put(o, ' ');
        break;
    }

    case 'd':
        v = wide ? va_arg(*args, int64_t) : va_arg(*args, int);
        if ( (int64_t)v < 0 )
        {
            put(o, '-');
            v = -v;
        }
        put_number(o, v, 10, width, pad);
        break;

    case 'u':
    case 'x':
        v = wide ? va_arg(*args, uint64_t) : va_arg(*args, uint32_t);
        if ( alt )
        {
            put(o, '0');
            put(o, 'x');
        }
        put_number(o, v, *f == 'x' ? 16 : 10, width, pad);
        break;

    default:
        put(o, *f);
    }

    return f + 1;
}

int format(char *buf, size_t size, const char *fmt, va_list args)
{
    struct out o = { buf, buf + size - 1 };
    va_list copy;

    va_copy(copy, args);
    while ( *fmt )
    {
        if ( *fmt != '%' )
            put(&o, *fmt++);
        else
            fmt = conversion(&o, fmt + 1, &copy);
    }
    va_end(copy);
    *o.p = '\0';

    return o.p - buf;
}

/*
 * One call, one write to the console: lines of several CPUs and of Xen don't
 * mix.  Xen copies 127 bytes at a time.
 */
void print(const char *fmt, ...)
{
    char line[128];
    va_list args;

    va_start(args, fmt);
    console_write(line, format(line, sizeof(line), fmt, args));
    va_end(args);
}

uint64_t rng_next(struct rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15UL;  /* splitmix64 */

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9UL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebUL;

    return z ^ (z >> 31);
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
