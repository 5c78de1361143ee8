/* The allocator of programs that test what happens without memory, over the C library's own. */
#include "allocation.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

static long countdown = -1; /* the allocation to fail; negative: none */
static long outstanding;
static size_t held;
static size_t peak;
static size_t held_before;

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

void allocation_measure(void)
{
    peak = held_before = held;
}

size_t allocation_taken(void)
{
    return peak - held_before;
}

#ifndef ZT_SANITIZED
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void __libc_free(void *block);

static bool fails_now(void)
{
    if (countdown < 0 || countdown-- > 0)
        return false;
    errno = ENOMEM;
    return true;
}

static void *counted(void *block)
{
    if (block != NULL) {
        outstanding++;
        held += malloc_usable_size(block);
        peak = held > peak ? held : peak;
    }
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
    size_t before;
    void *larger;

    if (fails_now())
        return NULL;
    before = block != NULL ? malloc_usable_size(block) : 0;
    larger = counted(__libc_realloc(block, size));
    if (larger != NULL && block != NULL) {
        outstanding--;
        held -= before;
    }
    return larger;
}

void free(void *block)
{
    if (block != NULL) {
        outstanding--;
        held -= malloc_usable_size(block);
    }
    __libc_free(block);
}
#endif
