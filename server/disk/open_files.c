#include "disk/open_files.h"

#include <assert.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/resource.h>

/* Descriptors for everything except connections: open models, uploads, the state folder, files that
 * are being sent, and connections over the limit. */
#define RESERVED_DESCRIPTORS 1024u
#define UPLOADS_SHARE        4
#define DECODED_SHARE        (8 * UPLOADS_SHARE)
/* Allows some uploads even if the limit is low. */
#define UPLOADS_LEAST 4u

/* The number of descriptors that connections leave. */
static atomic_uint rest = UINT_MAX;
static atomic_uint uploads;

/* A connection needs one descriptor. Sending a file may take a second one from the reserve; if none
 * is left, the file is sent from its mapping. */
unsigned open_files_for_connections(const struct config *config)
{
    uint64_t limit = (uint64_t)config_number(&config->limits.connections);
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY) {
        const uint64_t reserved =
            files.rlim_cur > 2 * RESERVED_DESCRIPTORS ? RESERVED_DESCRIPTORS : files.rlim_cur / 2;
        const uint64_t allowed = files.rlim_cur - reserved;

        limit = limit < allowed ? limit : allowed;
    }
    limit = limit < UINT32_MAX / 2 ? limit : UINT32_MAX / 2;
    return limit > 0 ? (unsigned)limit : 1;
}

void open_files_reckon(unsigned connections)
{
    struct rlimit files;

    assert(connections > 0);
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= UINT_MAX)
        return;
    atomic_store(&rest, files.rlim_cur > connections ? (unsigned)files.rlim_cur - connections : 0);
}

static unsigned most_uploads(void)
{
    const unsigned share = atomic_load(&rest) / UPLOADS_SHARE;

    return share > UPLOADS_LEAST ? share : UPLOADS_LEAST;
}

static bool count_up(unsigned count, unsigned most)
{
    assert(count > 0);
    if (atomic_fetch_add(&uploads, count) + count <= most)
        return true;
    atomic_fetch_sub(&uploads, count);
    return false;
}

bool open_files_begin_upload(unsigned count)
{
    return count_up(count, most_uploads());
}

bool open_files_continue_upload(unsigned count)
{
    const unsigned most = most_uploads();

    return count_up(count, most < UINT_MAX / 2 ? 2 * most : most);
}

void open_files_end_upload(unsigned count)
{
    const unsigned before = atomic_fetch_sub(&uploads, count);

    assert(before >= count);
    (void)before;
}

bool open_files_are_scarce(void)
{
    return atomic_load(&uploads) > most_uploads() / 2;
}

unsigned open_files_for_decoded(unsigned most)
{
    const unsigned share = atomic_load(&rest) / DECODED_SHARE;

    return share < most ? share + 1 : most;
}
