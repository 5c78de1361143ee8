/* Mapped bytes: whether they are in the page cache, and touching them without dying of SIGBUS. */
#include "bytes/resident.h"

#include <assert.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>

/* If the pages of the system are larger, mincore fails and the bytes count as absent. */
#define PAGE_BYTES 4096u
/* Pages that one call of mincore answers for; their list is on the stack. */
#define PAGES_MOST 512u

static atomic_bool is_allowed;
static struct sigaction before;
/* Where the thread continues if it touches bytes that cannot be read; NULL outside of
 * touch_guarded. */
static _Thread_local sigjmp_buf *landing;

/* Outside of touch_guarded the signal does what it did before: the instruction is repeated. One
 * that another process sent is not, so it is raised again. */
static void on_bus_error(int number, siginfo_t *information, void *machine)
{
    (void)machine;
    if (landing != NULL && information->si_code > 0)
        siglongjmp(*landing, 1);
    sigaction(SIGBUS, &before, NULL);
    if (information->si_code <= 0)
        raise(number);
}

void zt_source_allow_mapped(void)
{
    /* Not deferred, since the handler does not return to where it was called. */
    struct sigaction action = {.sa_sigaction = on_bus_error,
                               .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    struct sigaction found;

    sigemptyset(&action.sa_mask);
    if (sigaction(SIGBUS, &action, &found) != 0)
        return;
    if (found.sa_sigaction != on_bus_error)
        before = found;
    atomic_store(&is_allowed, true);
}

/* False: touch ended in the middle. */
static bool touch_guarded(void (*touch)(void *context), void *context)
{
    sigjmp_buf here;

    assert(landing == NULL);
    /* With the mask: a handler that ran before on_bus_error may have blocked signals. */
    if (sigsetjmp(here, 1) != 0) {
        landing = NULL;
        return false;
    }
    landing = &here;
    touch(context);
    landing = NULL;
    return true;
}

/* The last byte is read afterwards: a truncation before that makes it fail, and a later one cannot
 * change bytes that are taken. fstat would not do, since some file systems fill the last page with
 * zeros before they change the size; read waits for them. */
enum zt_status zt_source_touch(struct zt_source *source, uint64_t offset, uint64_t length,
                               void (*touch)(void *context), void *context, struct zt_error *error)
{
    const bool is_touched = touch_guarded(touch, context);
    enum zt_status status = ZT_OK;
    uint8_t last;

    if (length > 0)
        status = zt_source_read_at(source, offset + length - 1, &last, 1, error);
    if (status == ZT_OK && !is_touched)
        status =
            zt_fail(error, ZT_IO, NULL, offset,
                    "some of the %" PRIu64 " bytes at %" PRIu64 " cannot be read", length, offset);
    return status;
}

bool zt_is_resident(const uint8_t *bytes, uint64_t length)
{
    unsigned char pages[PAGES_MOST];
    uintptr_t at = (uintptr_t)bytes & ~(uintptr_t)(PAGE_BYTES - 1);
    const uintptr_t end = (uintptr_t)bytes + length;

    while (at < end) {
        const size_t left = (end - at + PAGE_BYTES - 1) / PAGE_BYTES;
        const size_t count = left < PAGES_MOST ? left : PAGES_MOST;

        if (mincore((void *)at, count * PAGE_BYTES, pages) != 0)
            return false;
        for (size_t i = 0; i < count; i++)
            if ((pages[i] & 1) == 0)
                return false;
        at += count * PAGE_BYTES;
    }
    return true;
}

const uint8_t *zt_source_mapped(struct zt_source *source, uint64_t offset, uint64_t length)
{
    const uint64_t size = zt_source_size(source);
    const uint8_t *mapping = NULL;

    if (atomic_load_explicit(&is_allowed, memory_order_relaxed) && offset <= size &&
        length <= size - offset)
        mapping = zt_source_map(source);
    return mapping != NULL ? mapping + offset : NULL;
}

const uint8_t *zt_source_resident(struct zt_source *source, uint64_t offset, uint64_t length)
{
    const uint8_t *bytes = zt_source_mapped(source, offset, length);

    return bytes != NULL && zt_is_resident(bytes, length) ? bytes : NULL;
}
