/* The files of a resumable upload: "resumable" (resumable_description.h); "state", one line with a
 * number and the system's boot, overwritten in place: it is shorter than a sector, so it is never
 * half written; when publication begins, a second line follows: the time, and the file's SHA-256;
 * and "length", one line with a number. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fcntl.h>

#include "upload/tus/resumable.h"
#include "upload/tus/resumable_description.h"
#include "upload/tus/tus_fields.h"

#define DATA_NAME     "data"
#define CREATION_NAME "resumable"
#define STATE_NAME    "state"
#define LENGTH_NAME   "length"

/* The header of a request is always smaller. */
#define CREATION_SIZE_MAX ((size_t)64 << 10)

#define BOOT_SIZE 37 /* a UUID and NUL */
/* 20 digits, a blank, the boot, a newline. */
#define STATE_SIZE (20 + 1 + BOOT_SIZE)
/* 20 digits, a blank, "sha256:" and 64 digits, a newline. */
#define END_SIZE (20 + 1 + 7 + 64 + 1)
/* 20 digits, a newline. */
#define LENGTH_SIZE (20 + 1)

/* A text that changes with every start of the system; dashes, which never match, if the system does
 * not report one. */
static void read_boot(char out_boot[BOOT_SIZE])
{
    int descriptor = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t length = descriptor >= 0 ? read(descriptor, out_boot, BOOT_SIZE - 1) : -1;

    if (descriptor >= 0)
        close(descriptor);
    if (length != BOOT_SIZE - 1)
        memset(out_boot, '-', BOOT_SIZE - 1);
    out_boot[BOOT_SIZE - 1] = '\0';
}

/* --- writing --- */

static enum zt_status write_state(struct resumable *resumable, uint64_t durable,
                                  struct zt_error *error)
{
    char boot[BOOT_SIZE];
    char line[STATE_SIZE + 1];

    read_boot(boot);
    snprintf(line, sizeof(line), "%020" PRIu64 " %s\n", durable, boot);
    return resumable->kept.server->store->ops->write_at(resumable->state_file, 0, line, STATE_SIZE,
                                                        error);
}

static enum zt_status write_creation(struct resumable *resumable, struct stored_upload *file,
                                     struct zt_error *error)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    enum zt_status status = ZT_NO_MEMORY;

    if (stream != NULL) {
        resumable_description_print(resumable, stream);
        status = fclose(stream) == 0 ? ZT_OK : ZT_NO_MEMORY;
    }
    if (status == ZT_OK)
        status = resumable->kept.server->store->ops->write_at(file, 0, text, length, error);
    else
        zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for an upload");
    free(text);
    return status;
}

static enum zt_status create_description(struct resumable *resumable, struct zt_error *error)
{
    struct store *store = resumable->kept.server->store;
    struct stored_upload *file;
    enum zt_status status =
        store->ops->kept_create(store, resumable->kept.entry.id, CREATION_NAME, 0, &file, error);

    if (status == ZT_OK) {
        status = write_creation(resumable, file, error);
        store->ops->abandon(file);
    }
    return status;
}

enum zt_status resumable_files_create(struct resumable *resumable, struct zt_error *error)
{
    struct store *store = resumable->kept.server->store;
    const char *id = resumable->kept.entry.id;
    enum zt_status status = store->ops->keep(store, id, error);

    if (status != ZT_OK)
        return status;
    status = store->ops->kept_create(store, id, DATA_NAME, atomic_load(&resumable->length),
                                     &resumable->data, error);
    resumable->follower.stored = resumable->data;
    if (status == ZT_OK)
        status = create_description(resumable, error);
    if (status == ZT_OK)
        status = store->ops->kept_create(store, id, STATE_NAME, 0, &resumable->state_file, error);
    if (status == ZT_OK)
        status = write_state(resumable, 0, error);
    if (status != ZT_OK)
        (void)store->ops->kept_drop(store, id, NULL);
    return status;
}

enum zt_status resumable_files_sync(struct resumable *resumable, struct zt_error *error)
{
    struct store *store = resumable->kept.server->store;
    struct stored_upload *creation;
    enum zt_status status =
        store->ops->kept_open(store, resumable->kept.entry.id, CREATION_NAME, &creation, error);

    if (status == ZT_OK) {
        status = store->ops->sync(creation, error);
        store->ops->abandon(creation);
    }
    return status == ZT_OK ? store->ops->sync(resumable->state_file, error) : status;
}

enum zt_status resumable_files_note(struct resumable *resumable, uint64_t durable,
                                    struct zt_error *error)
{
    enum zt_status status = write_state(resumable, durable, error);

    return status == ZT_OK ? resumable->kept.server->store->ops->sync(resumable->state_file, error)
                           : status;
}

/* The file of the length, which may be there from an earlier process. */
static enum zt_status open_length(struct resumable *resumable, struct stored_upload **out_file,
                                  struct zt_error *error)
{
    struct store *store = resumable->kept.server->store;
    const char *id = resumable->kept.entry.id;
    enum zt_status status = store->ops->kept_open(store, id, LENGTH_NAME, out_file, error);

    return status == ZT_NOT_FOUND
               ? store->ops->kept_create(store, id, LENGTH_NAME, 0, out_file, error)
               : status;
}

enum zt_status resumable_files_note_length(struct resumable *resumable, struct zt_error *error)
{
    const struct store_ops *ops = resumable->kept.server->store->ops;
    char line[LENGTH_SIZE + 1];
    struct stored_upload *file;
    enum zt_status status = open_length(resumable, &file, error);

    if (status != ZT_OK)
        return status;
    snprintf(line, sizeof(line), "%020" PRIu64 "\n", atomic_load(&resumable->length));
    status = ops->write_at(file, 0, line, LENGTH_SIZE, error);
    if (status == ZT_OK)
        status = ops->sync(file, error);
    ops->abandon(file);
    return status;
}

enum zt_status resumable_files_remove_data(struct resumable *part, struct zt_error *error)
{
    struct store *store = part->kept.server->store;

    return store->ops->kept_remove(store, part->kept.entry.id, DATA_NAME, error);
}

enum zt_status resumable_files_note_end(struct resumable *resumable, struct zt_error *error)
{
    const struct store_ops *ops = resumable->kept.server->store->ops;
    char line[END_SIZE + 1];
    char text[ZT_DIGEST_TEXT_SIZE];
    struct zt_digest digest = {.algorithm = ZT_DIGEST_SHA256,
                               .length_bytes = sizeof(resumable->published.sha256)};
    enum zt_status status;

    assert(resumable->is_hashed);
    memcpy(digest.bytes, resumable->published.sha256, sizeof(resumable->published.sha256));
    zt_digest_format(&digest, text);
    snprintf(line, sizeof(line), "%020" PRId64 " %.71s\n", (int64_t)time(NULL), text);
    status = ops->write_at(resumable->state_file, STATE_SIZE, line, END_SIZE, error);
    return status == ZT_OK ? ops->sync(resumable->state_file, error) : status;
}

/* --- reading --- */

/* Only a missing file shows that there is no upload. */
static enum kept_opened opened_by(enum zt_status status)
{
    if (status == ZT_OK)
        return KEPT_OPENED;
    return status == ZT_NOT_FOUND ? KEPT_NOT_OURS : KEPT_UNREADABLE;
}

/* Reads a whole small file as text, which the caller frees. A file that is too long is not ours. */
static enum kept_opened read_text(struct store *store, struct stored_upload *file, size_t size_max,
                                  char **out_text)
{
    uint64_t length = store->ops->length(file);
    struct zt_source *source;
    char *text;

    if (length > size_max)
        return KEPT_NOT_OURS;
    text = malloc((size_t)length + 1);
    if (text == NULL || store->ops->read_back(file, &source, NULL) != ZT_OK ||
        zt_source_read_at(source, 0, text, (size_t)length, NULL) != ZT_OK) {
        free(text);
        return KEPT_UNREADABLE;
    }
    text[length] = '\0';
    *out_text = text;
    return KEPT_OPENED;
}

static enum kept_opened read_file(struct store *store, const char *id, const char *name,
                                  size_t size_max, char **out_text)
{
    struct stored_upload *file;
    enum kept_opened opened = opened_by(store->ops->kept_open(store, id, name, &file, NULL));

    if (opened == KEPT_OPENED) {
        opened = read_text(store, file, size_max, out_text);
        store->ops->abandon(file);
    }
    return opened;
}

/* A length that was stated after creation. What is not whole was never acknowledged. False: it
 * cannot be read now. */
static bool find_length(struct resumable *resumable)
{
    const char *id = resumable->kept.entry.id;
    char *text = NULL;
    enum kept_opened opened =
        read_file(resumable->kept.server->store, id, LENGTH_NAME, LENGTH_SIZE, &text);
    uint64_t length;

    if (opened == KEPT_OPENED && strlen(text) == LENGTH_SIZE && text[0] == '0' &&
        text[LENGTH_SIZE - 1] == '\n') {
        text[LENGTH_SIZE - 1] = '\0';
        if (tus_number_parse(text + 1, &length)) {
            atomic_store(&resumable->is_length_stated, true);
            atomic_store(&resumable->length, length);
        }
    }
    free(text);
    return opened != KEPT_UNREADABLE;
}

/* Splits the first line. *out_same_boot: the system has not been restarted since. */
static bool parse_state(char *text, uint64_t *out_durable, bool *out_same_boot)
{
    char boot[BOOT_SIZE];

    if (strlen(text) < STATE_SIZE || text[0] != '0' || text[20] != ' ')
        return false;
    text[20] = '\0';
    text[STATE_SIZE - 1] = '\0';
    read_boot(boot);
    *out_same_boot = boot[0] != '-' && strcmp(text + 21, boot) == 0;
    return tus_number_parse(text + 1, out_durable);
}

/* Finds how much of the data counts. The rest is cut off, or it would later be mistaken for
 * received bytes. */
static enum kept_opened find_offset(struct resumable *resumable, char *state)
{
    const struct store_ops *ops = resumable->kept.server->store->ops;
    uint64_t there = ops->length(resumable->data);
    uint64_t length = atomic_load(&resumable->length);
    uint64_t durable = 0;
    bool same_boot = false;
    uint64_t offset;

    if (!parse_state(state, &durable, &same_boot) || durable > length)
        return KEPT_NOT_OURS;
    offset = same_boot ? there : durable < there ? durable : there;
    offset = offset < length ? offset : length;
    atomic_init(&resumable->durable, durable < offset ? durable : offset);
    atomic_init(&resumable->kept.entry.received, offset);
    resumable->follower.stored = resumable->data;
    if (resumable->role != RESUMABLE_PART)
        body_follower_count(&resumable->follower, offset);
    assert(atomic_load(&resumable->durable) <= offset && offset <= length);
    return offset == there || ops->truncate(resumable->data, offset, NULL) == ZT_OK
               ? KEPT_OPENED
               : KEPT_UNREADABLE;
}

static bool parse_end(char *line, uint64_t *out_when, uint8_t out_sha256[32])
{
    struct zt_digest digest;

    if (strlen(line) != END_SIZE || line[0] != '0' || line[20] != ' ' || line[END_SIZE - 1] != '\n')
        return false;
    line[20] = '\0';
    line[END_SIZE - 1] = '\0';
    if (!tus_number_parse(line + 1, out_when) ||
        zt_digest_parse((struct zt_text){line + 21, END_SIZE - 22}, &digest, NULL) != ZT_OK ||
        digest.algorithm != ZT_DIGEST_SHA256)
        return false;
    memcpy(out_sha256, digest.bytes, 32);
    return true;
}

/* The data is gone; if publication had begun, it has succeeded. */
static enum kept_opened find_outcome(struct resumable *resumable, char *state)
{
    uint64_t length = atomic_load(&resumable->length);
    uint64_t when;

    if (length == RESUMABLE_UNKNOWN || strlen(state) <= STATE_SIZE ||
        !parse_end(state + STATE_SIZE, &when, resumable->published.sha256))
        return KEPT_NOT_OURS;
    resumable->kept.server->store->ops->abandon(resumable->state_file);
    resumable->state_file = NULL;
    atomic_init(&resumable->kept.entry.active, (time_t)when);
    atomic_init(&resumable->kept.entry.received, length);
    atomic_init(&resumable->durable, length);
    resumable->is_hashed = true;
    atomic_init(&resumable->state, RESUMABLE_PUBLISHED);
    return KEPT_OUTCOME;
}

static enum kept_opened open_data(struct resumable *resumable, char *state)
{
    struct store *store = resumable->kept.server->store;
    enum zt_status status =
        store->ops->kept_open(store, resumable->kept.entry.id, DATA_NAME, &resumable->data, NULL);

    /* The client of a final upload that was not published never learned of it, and has its
     * parts. */
    if (status == ZT_OK)
        return resumable->role == RESUMABLE_FINAL ? KEPT_NOT_OURS : find_offset(resumable, state);
    return status == ZT_NOT_FOUND ? find_outcome(resumable, state) : KEPT_UNREADABLE;
}

static enum kept_opened open_files(struct resumable *resumable)
{
    struct store *store = resumable->kept.server->store;
    char *state = NULL;
    enum kept_opened opened = opened_by(store->ops->kept_open(
        store, resumable->kept.entry.id, STATE_NAME, &resumable->state_file, NULL));

    if (opened == KEPT_OPENED)
        opened = read_text(store, resumable->state_file, STATE_SIZE + END_SIZE, &state);
    if (opened == KEPT_OPENED)
        opened = open_data(resumable, state);
    free(state);
    return opened;
}

static enum kept_opened open_described(struct server *server, const char *id,
                                       struct resumable_description *description,
                                       struct kept_upload **out_upload)
{
    struct resumable *resumable = resumable_new(server, id, description->texts);
    enum kept_opened opened = KEPT_UNREADABLE;

    if (resumable == NULL)
        return KEPT_UNREADABLE;
    memcpy(resumable->kept.entry.model, description->model, sizeof(description->model));
    atomic_store(&resumable->length, description->length);
    resumable->kept.entry.created = (time_t)description->created;
    if (description->length != RESUMABLE_UNKNOWN || find_length(resumable))
        opened = open_files(resumable);
    if (atomic_load(&resumable->length) != RESUMABLE_UNKNOWN)
        atomic_store(&resumable->kept.entry.length, atomic_load(&resumable->length));
    if (opened == KEPT_NOT_OURS || opened == KEPT_UNREADABLE)
        kept_upload_release(resumable);
    else
        *out_upload = &resumable->kept;
    return opened;
}

enum kept_opened resumable_files_open(struct server *server, const char *id,
                                      struct kept_upload **out_upload)
{
    struct resumable_description description;
    char *text = NULL;
    enum kept_opened opened = read_file(server->store, id, CREATION_NAME, CREATION_SIZE_MAX, &text);

    if (opened != KEPT_OPENED)
        return opened;
    if (resumable_description_parse(text, &description)) {
        opened = open_described(server, id, &description, out_upload);
    } else {
        opened = KEPT_NOT_OURS;
        for (size_t i = 0; i < RESUMABLE_TEXTS; i++)
            free(description.texts[i]);
    }
    free(text);
    return opened;
}
