/* Damaged logs: distinguishes damage from an append that was not completed, and keeps a copy of a
 * damaged log in the same folder, "log.damaged-" and a hash of its bytes. The log continues with
 * what precedes the damage. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "store/versions/history_inside.h"
#include "zt/digest.h"

#define COPY "log.damaged-"
/* "repos/", a key, "/log.damaged-", 16 digits and NUL. */
#define NAME_SIZE (HISTORY_KEY_SIZE + 36)
/* Of a record: its length, the number of its change, an operation, and its hash. */
#define RECORD_BYTES_MIN (4 + 8 + 1 + RECORD_HASH_BYTES)
/* Numbers of changes of one log are not that far apart. */
#define CHANGES_MAX ((uint64_t)1 << 32)

/* --- what is damage --- */

/* The hash alone would do, but most places can be excluded without computing one. */
static bool is_record(const uint8_t *bytes, size_t length, uint64_t last)
{
    struct record_reader reader = {.at = bytes, .left = length};
    const uint64_t count = record_read_uint(&reader, 4);
    struct record_reader inside = {.left = (size_t)count};

    inside.at = record_read_bytes(&reader, (size_t)count);
    return inside.at != NULL && record_read_uint(&inside, 8) - last < CHANGES_MAX &&
           !inside.failed && record_read_hash(&reader, bytes);
}

static bool is_zero(const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

/* A process or machine that stopped while it appended leaves the beginning of a record, or zeros in
 * place of its end. The number of its change is a new one; records that were written together all
 * have the last one. */
bool log_is_incomplete(const uint8_t *bytes, size_t length, uint64_t last)
{
    struct record_reader reader = {.at = bytes, .left = length};
    const uint64_t count = record_read_uint(&reader, 4);
    struct record_reader inside = reader;

    assert(length > 0);
    if (record_read_uint(&inside, 8) == last && !inside.failed)
        return false;
    if (!reader.failed && count + RECORD_HASH_BYTES <= reader.left &&
        !is_zero(bytes + length - RECORD_HASH_BYTES, RECORD_HASH_BYTES))
        return false;
    for (size_t at = 1; at + RECORD_BYTES_MIN <= length; at++)
        if (is_record(bytes + at, length - at, last))
            return false;
    return true;
}

/* --- copies --- */

static void write_name(const char *key, const char *name, char out_name[NAME_SIZE])
{
    const int length = snprintf(out_name, NAME_SIZE, HISTORY_REPOS "/%s%s%s", key,
                                name[0] != '\0' ? "/" : "", name);

    assert(length > 0 && length < NAME_SIZE);
}

enum zt_status history_keep_damage(struct history *history, const char *key, const char *repo,
                                   const struct history_text *text, struct zt_error *error)
{
    struct history_place *place = history->place;
    char copy[sizeof(COPY) + 16];
    char name[NAME_SIZE];
    struct history_text written = *text;
    enum zt_status status = ZT_OK;

    assert(text->bytes != NULL && strlen(key) == HISTORY_KEY_SIZE - 1);
    snprintf(copy, sizeof(copy), COPY "%016" PRIx64, zt_xxh3(text->bytes, text->length));
    write_name(key, copy, name);
    if (history_is_writing(history))
        status = place->ops->write(place, name, &written, "", error);
    log_write(LOG_LEVEL_WARN,
              "the log of the repository %s is damaged, and commits after the damage are missing; "
              "no kept file is removed until you act (docs/versions.md): .ztserve/versions/%s",
              repo, name);
    return status == ZT_STALE ? ZT_OK : status; /* It was copied before. */
}

static bool is_copy(const char *name)
{
    return strncmp(name, COPY, strlen(COPY)) == 0 && strlen(name) < sizeof(COPY) + 20;
}

static bool note_copy(void *context, const char *name)
{
    bool *is_found = context;

    *is_found = *is_found || is_copy(name);
    return true;
}

bool history_has_damage(struct history *history, const char *key)
{
    struct history_place *place = history->place;
    bool is_found = false;
    char folder[NAME_SIZE];

    write_name(key, "", folder);
    return place->ops->list(place, folder, note_copy, &is_found, NULL) != ZT_OK || is_found;
}

struct removal {
    struct history_place *place;
    const char *key;
};

static bool remove_copy(void *context, const char *name)
{
    const struct removal *removal = context;
    char path[NAME_SIZE];

    if (is_copy(name)) {
        write_name(removal->key, name, path);
        removal->place->ops->remove(removal->place, path);
    }
    return true;
}

void history_forget_damage(struct history *history, const char *key)
{
    struct removal removal = {history->place, key};
    char folder[NAME_SIZE];

    write_name(key, "", folder);
    (void)history->place->ops->list(history->place, folder, remove_copy, &removal, NULL);
}

static bool is_damage(enum zt_status status, const struct zt_error *error)
{
    return status == ZT_IO && error->rule != NULL && strcmp(error->rule, HISTORY_DAMAGED) == 0;
}

/* Nobody can change the repository until its log is removed, so that is done last. */
static enum zt_status remove_log(struct history *history, const struct history_repo *repo,
                                 struct zt_error *error)
{
    struct log none = {.users = 0};
    char name[NAME_SIZE];
    const enum zt_status status = history_repo_key(repo, none.file.key, error);

    if (status != ZT_OK)
        return status;
    history_forget_damage(history, none.file.key);
    history_trees_sweep(history, &none);
    write_name(none.file.key, "log", name);
    history->place->ops->remove(history->place, name);
    atomic_store(&history->has_garbage, true);
    log_write(LOG_LEVEL_WARN, "%s; it was removed by a purge", error->message);
    return ZT_OK;
}

enum zt_status history_remove_unreadable(struct history *history, const struct history_repo *repo,
                                         struct zt_error *error)
{
    struct log *log;
    enum zt_status status;

    if (!history_is_writing(history))
        return history_refuse(error);
    status = history_lock(history, repo, error);
    if (status == ZT_OK) {
        status = log_pin(history, repo, &log, error);
        if (status == ZT_OK)
            log_unpin(history, log);
        history_unlock(history, repo);
    }
    return is_damage(status, error) ? remove_log(history, repo, error) : status;
}
