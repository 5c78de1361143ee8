/* The allocator of programs that test what happens without memory, over the C library's own. */
#include "allocation.h"

#include <stdlib.h>

static long countdown = -1; /* the allocation to fail; negative: none */
static long outstanding;

void allocation_fail(long n)
{
    countdown = n;
}

bool allocation_end(void)
{
    bool met = countdown < 0;

    countdown = -1;
    return met;
}

long allocation_outstanding(void)
{
    return outstanding;
}

#ifndef ZT_SANITIZED
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void __libc_free(void *block);

static bool fails_now(void)
{
    return countdown >= 0 && countdown-- == 0;
}

static void *counted(void *block)
{
    outstanding += block != NULL;
    return block;
}

void *malloc(size_t size)
{
    return fails_now() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
    return fails_now() ? NULL : counted(__libc_calloc(count, size));
}

void *realloc(void *block, size_t size)
{
    if (fails_now())
        return NULL;
    return block == NULL ? counted(__libc_realloc(block, size)) : __libc_realloc(block, size);
}

void free(void *block)
{
    outstanding -= block != NULL;
    __libc_free(block);
}
#endif
