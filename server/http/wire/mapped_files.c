/* A short list, searched from its beginning: answers come from few files at a time. */
#include "http/wire/mapped_files.h"

#include <assert.h>
#include <sys/socket.h>

#include "base/log.h"
#include "http/body/stamp.h"
#include "http/exchange/request_state.h"
#include "http/wire/connections.h"

static struct mapped_file *find(struct mapped_files *mapped, const struct zt_source *source)
{
    for (unsigned i = 0; i < mapped->count; i++)
        if (mapped->files[i].segment.source == source)
            return &mapped->files[i];
    return NULL;
}

/* By reading the last byte: some file systems fill the last page with zeros before they change the
 * size, and reading waits for them. */
static bool reaches(struct zt_source *source, uint64_t end)
{
    uint8_t last;

    return end == 0 || zt_source_read_at(source, end - 1, &last, 1, NULL) == ZT_OK;
}

/* Answers of a turn are mostly of the same file: it is looked at once for all. */
static void look(struct mapped_files *mapped, const struct segment *segment)
{
    if (mapped->seen == segment->source)
        return;
    mapped->seen = segment->source;
    mapped->seen_stamp = segment_stamp(segment, &mapped->seen_bytes);
}

static bool enter(struct mapped_files *mapped, const struct segment *segment)
{
    const uint64_t end = segment->offset + segment->length;
    struct mapped_file *file = find(mapped, segment->source);

    look(mapped, segment);
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
    return true;
}

static void leave(struct mapped_files *mapped, const struct zt_source *source)
{
    struct mapped_file *file = find(mapped, source);

    assert(file != NULL && file->answers > 0);
    if (--file->answers == 0)
        *file = mapped->files[--mapped->count];
}

/* Of the first `count` segments; each that is of a file counts as an answer of its own. */
static void leave_first(struct mapped_files *mapped, const struct segment *segments, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (segments[i].kind == SEGMENT_SOURCE)
            leave(mapped, segments[i].source);
}

bool mapped_files_enter(struct mapped_files *mapped, struct request *request)
{
    struct request_state *state = request_state(request);
    const struct answer *answer = &state->answer;

    assert(!state->mapped);
    for (size_t i = 0; i < answer->segment_count; i++)
        if (answer->segments[i].kind == SEGMENT_SOURCE && !enter(mapped, &answer->segments[i])) {
            leave_first(mapped, answer->segments, i);
            return false;
        }
    state->mapped = true;
    return true;
}

void mapped_files_leave(struct mapped_files *mapped, struct request *request)
{
    struct request_state *state = request_state(request);

    if (!state->mapped)
        return;
    state->mapped = false;
    leave_first(mapped, state->answer.segments, state->answer.segment_count);
}

static bool is_unchanged(const struct mapped_file *file)
{
    return segment_stamp(&file->segment, NULL) == file->stamp &&
           reaches(file->segment.source, file->end);
}

static bool is_whole(struct mapped_files *mapped, const struct answer *answer)
{
    for (size_t i = 0; i < answer->segment_count; i++) {
        const struct segment *segment = &answer->segments[i];

        if (segment->kind == SEGMENT_SOURCE &&
            (!reaches(segment->source, segment->offset + segment->length) ||
             segment_stamp(segment, NULL) != find(mapped, segment->source)->stamp))
            return false;
    }
    return true;
}

static void cut(struct mapped_files *mapped, const struct connections *connections)
{
    for (const struct connection *one = connections->first; one != NULL; one = one->after) {
        struct request *request = one->request;

        if (request == NULL || !request_state_const(request)->mapped ||
            is_whole(mapped, &request_state_const(request)->answer))
            continue;
        log_write(LOG_LEVEL_ERROR, "request %s: its answer is cut: the file has changed",
                  request->id);
        mapped_files_leave(mapped, request);
        shutdown(one->descriptor, SHUT_RDWR);
    }
}

void mapped_files_check(struct mapped_files *mapped, const struct connections *connections)
{
    mapped->seen = NULL;
    for (unsigned i = 0; i < mapped->count; i++)
        if (!is_unchanged(&mapped->files[i])) {
            cut(mapped, connections);
            return;
        }
}
