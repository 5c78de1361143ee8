/* A stamp takes a few multiplications and need not be cryptographic: write access to the folder
 * lets an attacker write any bytes anyway. The list is short and searched from its beginning,
 * because answers come from few files at the same time. */
#include "http/wire/file_changes.h"

#include <assert.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/log.h"
#include "http/exchange/request_state.h"
#include "http/wire/connections.h"

/* --- stamps --- */

/* An odd number without a pattern (2^64 divided by the golden ratio). */
#define FACTOR UINT64_C(0x9e3779b97f4a7c15)

static uint64_t mix(uint64_t stamp, uint64_t value)
{
    stamp = (stamp ^ value) * FACTOR;
    return stamp ^ stamp >> 32;
}

uint64_t file_stamp(const struct zt_source *file, uint64_t *out_bytes)
{
    struct stat stat = {0};
    uint64_t stamp = 1;

    /* Memory does not change, so only its size counts. */
    if (zt_source_descriptor(file) < 0)
        stat.st_size = (off_t)zt_source_size(file);
    else if (fstat(zt_source_descriptor(file), &stat) != 0)
        stat.st_size = 0;
    if (out_bytes != NULL)
        *out_bytes = (uint64_t)stat.st_size;
    stamp = mix(stamp, (uint64_t)stat.st_size);
    stamp = mix(stamp, (uint64_t)stat.st_mtim.tv_sec);
    return mix(stamp, (uint64_t)stat.st_mtim.tv_nsec);
}

uint64_t segment_stamp(const struct segment *segment, uint64_t *out_bytes)
{
    const struct zt_slice *slice;
    const struct zt_source *file = segment_file(segment, &slice);
    uint64_t length = 0;
    uint64_t stamp;

    assert(segment->kind == SEGMENT_SOURCE);
    stamp = file_stamp(file != NULL ? file : segment->source, &length);
    if (out_bytes != NULL)
        *out_bytes = length;
    return segment->is_pinned ? mix(1, length) : stamp;
}

uint64_t answer_stamp(const struct answer *answer)
{
    const struct zt_source *last = NULL;
    uint64_t stamp = 1;

    for (size_t i = 0; i < answer->segment_count; i++) {
        const struct zt_slice *slice;
        const struct zt_source *file = segment_file(&answer->segments[i], &slice);

        /* Consecutive segments are mostly from the same file. */
        if (file != NULL && file != last)
            stamp = mix(stamp, segment_stamp(&answer->segments[i], NULL));
        last = file != NULL ? file : last;
    }
    return stamp;
}

/* --- mapped files --- */

static struct mapped_file *find(struct mapped_files *mapped, const struct zt_source *source)
{
    assert(mapped->count <= MAPPED_FILES_MOST);
    for (unsigned i = 0; i < mapped->count; i++)
        if (mapped->files[i].segment.source == source)
            return &mapped->files[i];
    return NULL;
}

/* Reads the last byte to find out. Some file systems zero the last page before they change the
 * size, and reading waits for them. */
static bool reaches(struct zt_source *source, uint64_t end)
{
    uint8_t last;

    assert(end > 0);
    return zt_source_read_at(source, end - 1, &last, 1, NULL) == ZT_OK;
}

bool mapped_files_enter(struct mapped_files *mapped, struct request *request)
{
    struct request_state *state = request_state(request);
    const struct segment *segment = &state->answer.segments[0];
    const uint64_t end = segment->offset + segment->length;
    struct mapped_file *file = find(mapped, segment->source);

    assert(state->sending == SENDING_BUFFER && state->answer.segment_count == 1);
    /* Answers checked in one turn mostly come from one file, so it is examined once for all. */
    if (mapped->seen != segment->source) {
        mapped->seen = segment->source;
        mapped->seen_stamp = segment_stamp(segment, &mapped->seen_bytes);
    }
    if (end > mapped->seen_bytes || (file != NULL && file->stamp != mapped->seen_stamp))
        return false;
    if (file == NULL) {
        if (mapped->count == MAPPED_FILES_MOST)
            return false;
        file = &mapped->files[mapped->count++];
        *file = (struct mapped_file){.segment = *segment, .stamp = mapped->seen_stamp};
    }
    file->answers++;
    if (end > file->end)
        file->end = end;
    state->sending = SENDING_MAPPED;
    return true;
}

void mapped_files_leave(struct mapped_files *mapped, struct request *request)
{
    struct request_state *state = request_state(request);
    struct mapped_file *file;

    assert(state->sending == SENDING_MAPPED && state->answer.segment_count == 1);
    file = find(mapped, state->answer.segments[0].source);
    assert(file != NULL && file->answers > 0);
    state->sending = SENDING_BUFFER;
    if (--file->answers == 0)
        *file = mapped->files[--mapped->count];
}

static bool is_whole(const struct segment *segment, uint64_t end, uint64_t stamp)
{
    return segment_stamp(segment, NULL) == stamp && reaches(segment->source, end);
}

static void cut(struct mapped_files *mapped, const struct connections *connections)
{
    for (const struct connection *one = connections->first; one != NULL; one = one->after) {
        struct request *request = one->request;
        const struct segment *segment;

        if (request == NULL || request_state_const(request)->sending != SENDING_MAPPED)
            continue;
        segment = &request_state_const(request)->answer.segments[0];
        assert(find(mapped, segment->source) != NULL);
        if (is_whole(segment, segment->offset + segment->length,
                     find(mapped, segment->source)->stamp))
            continue;
        log_write(LOG_LEVEL_ERROR, "request %s: its response is cut off: the file has changed",
                  request->id);
        mapped_files_leave(mapped, request);
        shutdown(one->descriptor, SHUT_RDWR);
    }
}

void mapped_files_check(struct mapped_files *mapped, const struct connections *connections)
{
    mapped->seen = NULL;
    for (unsigned i = 0; i < mapped->count; i++) {
        const struct mapped_file *file = &mapped->files[i];

        if (!is_whole(&file->segment, file->end, file->stamp)) {
            cut(mapped, connections);
            return;
        }
    }
}
