/* Whether opening a file takes more memory than its length allows (docs/rules/, Memory). Known only
 * under a sanitizer that lets us hook its allocator. */
#include "fuzz.h"

/* zt/model.h: "at most 16 n bytes + 1 MiB" for a manifest of n bytes; here for a file of n
 * bytes. */
#define HELD_RATIO 16
#define HELD_BASE  ((size_t)1 << 20)

int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *block,
                                                                size_t size),
                                              void (*on_free)(const volatile void *block))
    __attribute__((weak));
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static bool watching;
static bool exceeded;
static size_t held_before;
static size_t held_limit;

static void on_malloc(const volatile void *block, size_t size)
{
    (void)block;
    if (watching &&
        (size > held_limit || __sanitizer_get_current_allocated_bytes() - held_before > held_limit))
        exceeded = true;
}

static void on_free(const volatile void *block)
{
    (void)block;
}

void fuzz_hold_at_most(size_t file_length)
{
    static bool installed;

    if (__sanitizer_install_malloc_and_free_hooks == NULL ||
        __sanitizer_get_current_allocated_bytes == NULL)
        return;
    if (!installed)
        __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
    installed = true;
    exceeded = false;
    held_before = __sanitizer_get_current_allocated_bytes();
    held_limit = HELD_RATIO * file_length + HELD_BASE;
    watching = true;
}

bool fuzz_held(void)
{
    watching = false;
    return !exceeded;
}
