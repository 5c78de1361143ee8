/* The file of a log: a header with the repository, and records, each with its length before and a
 * hash behind. It is replaced by a new one when most of its records are about forgotten commits. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hex.h"
#include "store/versions/history_inside.h"

#define MAGIC            "zthist1\n"
#define MAGIC_BYTES      8u
#define HEADER_BYTES_MAX (MAGIC_BYTES + 1 + 4 + MODEL_NAME_MAX + 8 + RECORD_HASH_BYTES)
/* Half of a log may be dead, and this much more. */
#define DEAD_BYTES   ((uint64_t)64 << 10)
#define LENGTH_BYTES 4u

/* "repos/", a key, "/log" and NUL. */
#define NAME_SIZE (HISTORY_KEY_SIZE + 10)

static void write_name(const char *key, char out_name[NAME_SIZE])
{
    assert(strlen(key) == HISTORY_KEY_SIZE - 1);
    snprintf(out_name, NAME_SIZE, HISTORY_REPOS "/%s/log", key);
}

/* --- reading --- */

static bool read_header(struct record_reader *reader, const uint8_t *start,
                        struct history_repo *out_repo, uint64_t *out_last)
{
    const uint8_t *magic = record_read_bytes(reader, MAGIC_BYTES);
    const uint64_t kind = record_read_uint(reader, 1);
    const uint64_t length = record_read_uint(reader, 4);
    const uint8_t *name =
        length <= MODEL_NAME_MAX ? record_read_bytes(reader, (size_t)length) : NULL;

    *out_last = record_read_uint(reader, 8);
    if (name == NULL || !record_read_hash(reader, start) ||
        memcmp(magic, MAGIC, MAGIC_BYTES) != 0 || kind > 1 ||
        memchr(name, 0, (size_t)length) != NULL)
        return false;
    *out_repo = (struct history_repo){.is_root_model = kind == 1};
    memcpy(out_repo->name, name, (size_t)length);
    return true;
}

/* Returns ZT_INVALID at a damaged record, or ZT_NO_MEMORY. */
static enum zt_status read_record(struct record_reader *reader, struct log_state *state)
{
    const uint8_t *start = reader->at;
    const uint64_t length = record_read_uint(reader, LENGTH_BYTES);
    struct record_reader inside = {.left = (size_t)length};

    inside.at = record_read_bytes(reader, (size_t)length);
    if (!record_read_hash(reader, start))
        return ZT_INVALID;
    return log_state_apply(state, &inside);
}

/* repo: a name, or "" if it is not known. */
static enum zt_status fail_damaged(const char *key, const char *repo, struct zt_error *error)
{
    return zt_fail(error, ZT_IO, HISTORY_DAMAGED, ZT_NO_OFFSET,
                   "the log of %s%.80s is damaged: .ztserve/versions/" HISTORY_REPOS "/%s/log",
                   repo[0] != '\0' ? "the repository " : "a repository", repo, key);
}

/* Without its last records, the history goes on with the youngest commit of main. */
static enum zt_status restore_main(struct log_state *state)
{
    struct log_record record;
    struct record_reader reader;
    enum zt_status status = ZT_OK;
    size_t at = state->count;

    while (at > 0 && strcmp(state->entries[at - 1].texts, HISTORY_MAIN) != 0)
        at--;
    if (at == 0 || log_state_ref(state, zt_text_from(HISTORY_MAIN), false) != NULL)
        return ZT_OK;
    log_record_begin(&record, state->last);
    log_record_ref(&record, HISTORY_MAIN, false, state->entries[at - 1].number, "");
    reader = (struct record_reader){.at = record.writer.bytes, .left = record.writer.length};
    status = record.writer.failed ? ZT_NO_MEMORY : log_state_apply(state, &reader);
    log_record_free(&record);
    return status;
}

static enum zt_status read_log(const uint8_t *bytes, size_t length, const struct history_repo *repo,
                               struct log_file *file, struct log_state *out_state,
                               struct zt_error *error)
{
    struct record_reader reader = {.at = bytes, .left = length};
    struct log_state state = {.count = 0};
    struct history_repo named;
    enum zt_status status = ZT_OK;

    if (!read_header(&reader, bytes, &named, &state.last) ||
        named.is_root_model != repo->is_root_model || strcmp(named.name, repo->name) != 0)
        return fail_damaged(file->key, repo->name, error);
    while (status == ZT_OK && reader.left > 0) {
        file->length = (uint64_t)(reader.at - bytes);
        status = read_record(&reader, &state);
    }
    file->must_be_replaced = status == ZT_INVALID;
    if (status == ZT_INVALID && restore_main(&state) == ZT_NO_MEMORY)
        status = ZT_NO_MEMORY;
    if (status == ZT_NO_MEMORY) {
        log_state_free(&state);
        return zt_fail_memory(error, "the commits of a repository");
    }
    file->is_damaged =
        status != ZT_OK &&
        !log_is_incomplete(bytes + file->length, length - (size_t)file->length, state.last);
    if (status == ZT_OK)
        file->length = length;
    assert(file->length <= length);
    *out_state = state;
    return ZT_OK;
}

/* Keeps a copy of a damaged log, then replaces it. If that fails, the next change does it. */
static enum zt_status mend(struct history *history, struct log_file *file,
                           const struct history_repo *repo, const struct history_text *text,
                           const struct log_state *state, struct zt_error *error)
{
    const enum zt_status status = history_keep_damage(history, file->key, repo->name, text, error);
    struct zt_error ignored;

    if (status == ZT_OK && history_is_writing(history))
        (void)log_file_replace(history, file, repo, state, &ignored);
    return status;
}

/* At most the list of files of the incomplete record has no entry. If there are more, the log was
 * cut. A log that is never appended to is never incomplete. Other servers' changes go on while a
 * server that only reads looks. */
static enum zt_status look_for_cut(struct history *history, struct log_file *file,
                                   const struct log_state *state, struct zt_error *error)
{
    size_t unnamed = 0;
    enum zt_status status = ZT_OK;

    if (!file->must_be_replaced || file->is_damaged)
        return ZT_OK;
    if (history_is_writing(history) && history->place->ops->append != NULL)
        status = history_trees_count_unnamed(history, file->key, state, &unnamed, error);
    file->is_damaged = history->place->ops->append == NULL || unnamed > 1;
    return status;
}

enum zt_status log_file_read(struct history *history, struct log_file *file,
                             const struct history_repo *repo, struct log_state *out_state,
                             bool *out_is_same, struct zt_error *error)
{
    struct history_place *place = history->place;
    struct history_text text = {.length = 0};
    enum zt_status status = history_repo_key(repo, file->key, error);
    char name[NAME_SIZE];

    if (status != ZT_OK)
        return status;
    write_name(file->key, name);
    if (place->is_missing)
        status = ZT_NOT_FOUND;
    else
        status = place->ops->read(place, name, file->version[0] != '\0' ? file->version : NULL,
                                  HISTORY_FILE_BYTES, &text, error);
    *out_is_same = status == ZT_NOT_FOUND ? file->version[0] == '\0' : text.bytes == NULL;
    if (status == ZT_NOT_FOUND) {
        *out_state = (struct log_state){.count = 0};
        file->length = 0;
        file->version[0] = '\0';
        file->must_be_replaced = true;
        return ZT_OK;
    }
    if (status != ZT_OK || *out_is_same)
        return status;
    status = read_log(text.bytes, text.length, repo, file, out_state, error);
    if (status == ZT_OK) {
        memcpy(file->version, text.version, sizeof(file->version));
        status = look_for_cut(history, file, out_state, error);
        if (status == ZT_OK && file->is_damaged)
            status = mend(history, file, repo, &text, out_state, error);
        if (status != ZT_OK)
            log_state_free(out_state);
    }
    free(text.bytes);
    return status;
}

enum zt_status log_file_name(struct history *history, const char *key,
                             struct history_repo *out_repo, struct zt_error *error)
{
    struct history_place *place = history->place;
    struct record_reader reader;
    struct history_text text;
    char name[NAME_SIZE];
    enum zt_status status;
    uint64_t last;

    write_name(key, name);
    status = place->ops->read(place, name, NULL, HEADER_BYTES_MAX, &text, error);
    if (status != ZT_OK)
        return status;
    reader = (struct record_reader){.at = text.bytes, .left = text.length};
    if (!read_header(&reader, text.bytes, out_repo, &last))
        status = fail_damaged(key, "", error);
    free(text.bytes);
    return status;
}

/* --- writing --- */

static void write_header(struct record_writer *writer, const struct history_repo *repo,
                         uint64_t last)
{
    const size_t from = writer->length;

    assert(writer->length == 0);
    record_write_bytes(writer, MAGIC, MAGIC_BYTES);
    record_write_uint(writer, repo->is_root_model, 1);
    record_write_text(writer, repo->name);
    record_write_uint(writer, last, 8);
    record_write_hash(writer, from);
}

static void write_record(struct record_writer *writer, const struct log_record *record)
{
    const size_t from = writer->length;

    assert(record->writer.failed || record->writer.length > 0);
    if (record->writer.failed) {
        writer->failed = true;
        return;
    }
    record_write_uint(writer, record->writer.length, LENGTH_BYTES);
    record_write_bytes(writer, record->writer.bytes, record->writer.length);
    record_write_hash(writer, from);
}

static void copy_text(char *to, size_t size, const char **texts)
{
    snprintf(to, size, "%s", *texts);
    *texts += strlen(*texts) + 1;
}

void log_entry_read(const struct log_entry *entry, struct history_commit *out_commit)
{
    const char *texts = entry->texts;

    assert(texts != NULL);
    *out_commit = (struct history_commit){.number = entry->number, .time_ms = entry->time_ms};
    zt_hex_write(out_commit->id, entry->id, sizeof(entry->id));
    copy_text(out_commit->branch, sizeof(out_commit->branch), &texts);
    copy_text(out_commit->client, sizeof(out_commit->client), &texts);
    copy_text(out_commit->title, sizeof(out_commit->title), &texts);
    copy_text(out_commit->message, sizeof(out_commit->message), &texts);
}

static int compare_refs(const void *a, const void *b)
{
    const struct log_ref *first = *(const struct log_ref *const *)a;
    const struct log_ref *second = *(const struct log_ref *const *)b;

    return (first->number > second->number) - (first->number < second->number);
}

static void write_ref(struct record_writer *writer, uint64_t change, const struct log_ref *ref)
{
    struct log_record record;

    log_record_begin(&record, change);
    log_record_ref(&record, ref->name, ref->is_tag, ref->number, ref->message);
    write_record(writer, &record);
    log_record_free(&record);
}

/* Each entry and reference is a record, and a reference follows its entry, so that damage costs as
 * little as possible. */
static void write_state(struct record_writer *writer, const struct log_state *state)
{
    const struct log_ref **refs = calloc(state->ref_count + 1, sizeof(*refs));
    struct history_commit commit;
    struct log_record record;
    size_t next = 0;

    if (refs == NULL) {
        writer->failed = true;
        return;
    }
    for (size_t i = 0; i < state->ref_count; i++)
        refs[i] = &state->refs[i];
    if (state->ref_count > 0)
        qsort(refs, state->ref_count, sizeof(*refs), compare_refs);
    for (size_t i = 0; i < state->count; i++) {
        log_entry_read(&state->entries[i], &commit);
        log_record_begin(&record, state->last);
        log_record_entry(&record, &commit, state->entries[i].parent);
        write_record(writer, &record);
        log_record_free(&record);
        while (next < state->ref_count && refs[next]->number == commit.number)
            write_ref(writer, state->last, refs[next++]);
    }
    assert(next == state->ref_count);
    free(refs);
}

enum zt_status log_file_replace(struct history *history, struct log_file *file,
                                const struct history_repo *repo, const struct log_state *state,
                                struct zt_error *error)
{
    struct history_place *place = history->place;
    struct record_writer image = {.limit_bytes = history->file_bytes};
    struct history_text text;
    char name[NAME_SIZE];
    enum zt_status status;

    write_header(&image, repo, state->last);
    write_state(&image, state);
    write_name(file->key, name);
    if (image.failed)
        status = state->live_bytes > history->file_bytes / 2
                     ? zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                               "the log of the repository's commits is too long")
                     : zt_fail_memory(error, "the commits of a repository");
    else {
        text.bytes = image.bytes;
        text.length = image.length;
        status =
            place->ops->write(place, name, &text, place->is_shared ? file->version : NULL, error);
        file->must_be_replaced = status != ZT_OK;
    }
    if (status == ZT_OK) {
        file->length = image.length;
        memcpy(file->version, text.version, sizeof(file->version));
    }
    record_writer_free(&image);
    return status;
}

bool log_file_may_grow(const struct history *history, const struct log_file *file,
                       const struct log_state *state, const struct log_record *record)
{
    return history->place->ops->append != NULL && !file->must_be_replaced &&
           file->length <= 2 * state->live_bytes + DEAD_BYTES &&
           file->length + record->writer.length <= history->file_bytes - DEAD_BYTES;
}

enum zt_status log_file_append(struct history *history, struct log_file *file,
                               const struct log_record *record, struct zt_error *error)
{
    struct record_writer bytes = {.limit_bytes = HISTORY_FILE_BYTES};
    struct history_place *place = history->place;
    char name[NAME_SIZE];
    enum zt_status status;

    assert(!record->writer.failed && place->ops->append != NULL);
    write_record(&bytes, record);
    if (bytes.failed)
        return zt_fail_memory(error, "the commits of a repository");
    write_name(file->key, name);
    status = place->ops->append(place, name, file->length, bytes.bytes, bytes.length, error);
    if (status == ZT_OK)
        file->length += bytes.length;
    else
        file->must_be_replaced = true;
    record_writer_free(&bytes);
    return status;
}
