/* The files of a resumable upload. "resumable": the client's values from the creation. "state": one
 * line with a number and the system's boot, overwritten in place; it is shorter than a sector, so
 * it is never half written. When publication begins, a second line follows, with the time and the
 * file's SHA-256. "length": one line with a number. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fcntl.h>

#include "store/staging.h"
#include "upload/shared/kept_files.h"
#include "upload/shared/write_checks.h"
#include "upload/tus/resumable.h"
#include "upload/tus/tus_fields.h"

#define DATA_NAME     "data"
#define CREATION_NAME "resumable"
#define STATE_NAME    "state"
#define LENGTH_NAME   "length"

#define BOOT_SIZE 37 /* a UUID and NUL */
/* 20 digits, a blank, the boot, a newline. */
#define STATE_SIZE (20 + 1 + BOOT_SIZE)
/* 20 digits, a blank, "sha256:" and 64 digits, a newline. */
#define END_SIZE (20 + 1 + 7 + 64 + 1)
/* 20 digits, a newline. */
#define LENGTH_SIZE (20 + 1)

/* Reads a text that changes with every boot of the system; writes dashes, which never match, if the
 * system does not report one. */
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

/* --- the description --- */

/* Written instead of an unknown length. */
#define UNKNOWN "unknown"

static const char *const text_keys[RESUMABLE_TEXTS] = {
    [RESUMABLE_METADATA] = "metadata",
    [RESUMABLE_IF_MATCH] = "if-match",
    [RESUMABLE_IF_NONE_MATCH] = "if-none-match",
    [RESUMABLE_IF_UNMODIFIED_SINCE] = "if-unmodified-since",
    [RESUMABLE_REPR_DIGEST] = "repr-digest",
    [RESUMABLE_CONCAT] = "concat",
    [RESUMABLE_OWNER] = "owner",
};

/* Header fields and clients' names contain no line ends, so each is one line. A length that was
 * stated later is not part of the description. */
static void print_description(const struct kept_upload *kept, FILE *stream)
{
    const struct resumable *resumable = (const struct resumable *)kept;
    const uint64_t length = atomic_load(&resumable->length);

    assert((kept->entry.model[0] == '\0') == (resumable->role == RESUMABLE_PART));
    if (kept->entry.model[0] != '\0')
        fprintf(stream, "model %s\n", kept->entry.model);
    if (length == RESUMABLE_UNKNOWN)
        fprintf(stream, "length %s\n", UNKNOWN);
    else
        fprintf(stream, "length %" PRIu64 "\n", length);
    fprintf(stream, "created %" PRId64 "\n", (int64_t)kept->entry.created);
    for (size_t i = 0; i < RESUMABLE_TEXTS; i++)
        if (resumable->texts[i] != NULL)
            fprintf(stream, "%s %s\n", text_keys[i], resumable->texts[i]);
}

struct description {
    char model[MODEL_NAME_MAX + 1]; /* empty for a part */
    uint64_t length;                /* RESUMABLE_UNKNOWN: to be stated later */
    uint64_t created;
    char *texts[RESUMABLE_TEXTS]; /* each allocated separately */
    bool has_length;
};

static bool take_text(struct description *description, const char *key, const char *value)
{
    for (size_t i = 0; i < RESUMABLE_TEXTS; i++) {
        if (strcmp(key, text_keys[i]) == 0 && description->texts[i] == NULL) {
            description->texts[i] = strdup(value);
            return description->texts[i] != NULL;
        }
    }
    return false;
}

static bool take_model(struct description *description, const char *value)
{
    snprintf(description->model, sizeof(description->model), "%s", value);
    return strlen(value) < sizeof(description->model);
}

static bool take_length(struct description *description, const char *value)
{
    description->length = RESUMABLE_UNKNOWN;
    description->has_length =
        strcmp(value, UNKNOWN) == 0 || tus_number_parse(value, &description->length);
    return description->has_length;
}

static bool take_line(void *out_description, const char *key, char *value)
{
    struct description *description = out_description;

    if (strcmp(key, "model") == 0)
        return take_model(description, value);
    if (strcmp(key, "length") == 0)
        return take_length(description, value);
    if (strcmp(key, "created") == 0)
        return tus_number_parse(value, &description->created);
    return take_text(description, key, value);
}

static const struct kept_description description_format = {
    .name = CREATION_NAME,
    .format = "ztserve-resumable",
    .version = 1,
    .print = print_description,
    .take = take_line,
};

/* Returns true if the name is right: parts have none, and all others have one. */
static bool has_its_name(const struct description *description)
{
    const char *concat = description->texts[RESUMABLE_CONCAT];
    const char *metadata = description->texts[RESUMABLE_METADATA];
    const struct zt_text name = zt_text_from(description->model);
    const char *urls;

    if (concat != NULL && tus_concat_parse(concat, &urls) == TUS_CONCAT_PART)
        return name.length == 0;
    return metadata != NULL && tus_metadata_is_of_file(metadata) ? file_path_is_writable(name)
                                                                 : model_name_is_plain(name);
}

/* --- writing --- */

static enum zt_status write_state(struct resumable *resumable, uint64_t durable,
                                  struct zt_error *error)
{
    char boot[BOOT_SIZE];
    char line[STATE_SIZE + 1];

    assert(resumable->state_file != NULL);
    read_boot(boot);
    snprintf(line, sizeof(line), "%020" PRIu64 " %s\n", durable, boot);
    assert(strlen(line) == STATE_SIZE);
    return staged_file_write_at(resumable->state_file, 0, line, STATE_SIZE, error);
}

enum zt_status resumable_files_create(struct resumable *resumable, struct zt_error *error)
{
    struct store *store = resumable->kept.server->store;
    const char *id = resumable->kept.entry.id;
    enum zt_status status = staging_folder_make(store->staging, id, error);

    assert(resumable->data == NULL && resumable->state_file == NULL);
    if (status != ZT_OK)
        return status;
    status = staging_folder_create(store->staging, id, DATA_NAME, atomic_load(&resumable->length),
                                   &resumable->data, error);
    resumable->follower.stored = resumable->data;
    if (status == ZT_OK)
        status = kept_description_write(&description_format, &resumable->kept, false, error);
    if (status == ZT_OK)
        status =
            staging_folder_create(store->staging, id, STATE_NAME, 0, &resumable->state_file, error);
    if (status == ZT_OK)
        status = write_state(resumable, 0, error);
    if (status != ZT_OK)
        (void)staging_folder_drop(store->staging, id, NULL);
    return status;
}

enum zt_status resumable_files_reopen(struct resumable *resumable, struct zt_error *error)
{
    struct store *store = resumable->kept.server->store;
    const char *id = resumable->kept.entry.id;
    enum zt_status status =
        staging_folder_open(store->staging, id, DATA_NAME, &resumable->data, error);

    assert(resumable->state_file == NULL);
    if (status != ZT_OK)
        return status;
    status = staging_folder_open(store->staging, id, STATE_NAME, &resumable->state_file, error);
    if (status == ZT_OK)
        body_follower_continue(&resumable->follower, resumable->data);
    else
        resumable_files_close(resumable);
    return status;
}

void resumable_files_close(struct resumable *resumable)
{
    body_follower_stop(&resumable->follower);
    staged_file_close(resumable->data);
    staged_file_close(resumable->state_file);
    resumable->data = NULL;
    resumable->state_file = NULL;
}

enum zt_status resumable_files_sync(struct resumable *resumable, struct zt_error *error)
{
    struct store *store = resumable->kept.server->store;
    struct staged_file *creation;
    enum zt_status status = staging_folder_open(store->staging, resumable->kept.entry.id,
                                                CREATION_NAME, &creation, error);

    assert(resumable->state_file != NULL);
    if (status == ZT_OK) {
        status = staged_file_sync(creation, error);
        staged_file_close(creation);
    }
    return status == ZT_OK ? staged_file_sync(resumable->state_file, error) : status;
}

enum zt_status resumable_files_note(struct resumable *resumable, uint64_t durable,
                                    struct zt_error *error)
{
    enum zt_status status = write_state(resumable, durable, error);

    assert(durable <= atomic_load(&resumable->kept.entry.received));
    return status == ZT_OK ? staged_file_sync(resumable->state_file, error) : status;
}

/* Opens or creates the file of the length, which an earlier process may have left. */
static enum zt_status open_length(struct resumable *resumable, struct staged_file **out_file,
                                  struct zt_error *error)
{
    struct store *store = resumable->kept.server->store;
    const char *id = resumable->kept.entry.id;
    enum zt_status status = staging_folder_open(store->staging, id, LENGTH_NAME, out_file, error);

    return status == ZT_NOT_FOUND
               ? staging_folder_create(store->staging, id, LENGTH_NAME, 0, out_file, error)
               : status;
}

enum zt_status resumable_files_note_length(struct resumable *resumable, struct zt_error *error)
{
    char line[LENGTH_SIZE + 1];
    struct staged_file *file;
    enum zt_status status = open_length(resumable, &file, error);

    assert(atomic_load(&resumable->length) != RESUMABLE_UNKNOWN);
    if (status != ZT_OK)
        return status;
    snprintf(line, sizeof(line), "%020" PRIu64 "\n", atomic_load(&resumable->length));
    status = staged_file_write_at(file, 0, line, LENGTH_SIZE, error);
    if (status == ZT_OK)
        status = staged_file_sync(file, error);
    staged_file_close(file);
    return status;
}

enum zt_status resumable_files_remove_data(struct resumable *part, struct zt_error *error)
{
    struct store *store = part->kept.server->store;

    assert(part->role == RESUMABLE_PART);
    return staging_folder_remove(store->staging, part->kept.entry.id, DATA_NAME, error);
}

enum zt_status resumable_files_note_end(struct resumable *resumable, struct zt_error *error)
{
    char line[END_SIZE + 1];
    char text[ZT_DIGEST_TEXT_SIZE];
    struct zt_digest digest = {.algorithm = ZT_DIGEST_SHA256,
                               .length_bytes = sizeof(resumable->published.sha256)};
    enum zt_status status;

    assert(resumable->state_file != NULL);
    assert(resumable->is_hashed);
    memcpy(digest.bytes, resumable->published.sha256, sizeof(resumable->published.sha256));
    zt_digest_format(&digest, text);
    snprintf(line, sizeof(line), "%020" PRId64 " %.71s\n", (int64_t)time(NULL), text);
    assert(strlen(line) == END_SIZE);
    status = staged_file_write_at(resumable->state_file, STATE_SIZE, line, END_SIZE, error);
    return status == ZT_OK ? staged_file_sync(resumable->state_file, error) : status;
}

/* --- reading --- */

/* Reads the length that was stated after creation. An incomplete file was never acknowledged.
 * Returns false if it cannot be read now. */
static bool find_length(struct resumable *resumable)
{
    const char *id = resumable->kept.entry.id;
    char *text = NULL;
    enum kept_opened opened =
        kept_text_read(resumable->kept.server->store->staging, id, LENGTH_NAME, LENGTH_SIZE, &text);
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

/* Finds how many bytes of the data are valid. The rest is cut off, or it would later be mistaken
 * for received bytes. */
static enum kept_opened find_offset(struct resumable *resumable, char *state)
{
    uint64_t length = atomic_load(&resumable->length);
    uint64_t durable = 0;
    bool same_boot = false;
    uint64_t offset;
    uint64_t there;

    assert(resumable->data != NULL);
    there = staged_file_length(resumable->data);
    if (!parse_state(state, &durable, &same_boot) || durable > length)
        return KEPT_NOT_OURS;
    offset = same_boot ? there : durable < there ? durable : there;
    offset = offset < length ? offset : length;
    atomic_init(&resumable->durable, durable < offset ? durable : offset);
    atomic_init(&resumable->kept.entry.received, offset);
    assert(atomic_load(&resumable->durable) <= offset && offset <= length);
    if (offset != there && staged_file_truncate(resumable->data, offset, NULL) != ZT_OK)
        return KEPT_UNREADABLE;
    resumable->follower.stored = resumable->data;
    /* Comes last: the job that this may start closes the file when it ends (resumable_rest). */
    if (resumable->role != RESUMABLE_PART)
        body_follower_advance(&resumable->follower, offset);
    return KEPT_OPENED;
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

/* Called when the data is missing: if publication had begun, it has succeeded. */
static enum kept_opened find_outcome(struct resumable *resumable, char *state)
{
    uint64_t length = atomic_load(&resumable->length);
    uint64_t when;

    assert(resumable->data == NULL && resumable->state_file != NULL);
    if (length == RESUMABLE_UNKNOWN || strlen(state) <= STATE_SIZE ||
        !parse_end(state + STATE_SIZE, &when, resumable->published.sha256))
        return KEPT_NOT_OURS;
    staged_file_close(resumable->state_file);
    resumable->state_file = NULL;
    atomic_init(&resumable->kept.entry.active, (time_t)when);
    atomic_init(&resumable->kept.entry.touched_ms, kept_upload_ms_of((time_t)when));
    atomic_init(&resumable->kept.entry.received, length);
    atomic_init(&resumable->durable, length);
    resumable->is_hashed = true;
    /* The process that published it may have failed to sync the folder. */
    resumable->published.remains.is_unsynced = true;
    atomic_init(&resumable->state, RESUMABLE_PUBLISHED);
    return KEPT_OUTCOME;
}

static enum kept_opened open_data(struct resumable *resumable, char *state)
{
    struct store *store = resumable->kept.server->store;
    enum zt_status status = staging_folder_open(store->staging, resumable->kept.entry.id, DATA_NAME,
                                                &resumable->data, NULL);

    /* The client of an unpublished final upload never learned its id, and still has the parts. */
    if (status == ZT_OK)
        return resumable->role == RESUMABLE_FINAL ? KEPT_NOT_OURS : find_offset(resumable, state);
    return status == ZT_NOT_FOUND ? find_outcome(resumable, state) : KEPT_UNREADABLE;
}

static enum kept_opened open_files(struct resumable *resumable)
{
    struct store *store = resumable->kept.server->store;
    char *state = NULL;
    enum kept_opened opened = kept_opened_by(staging_folder_open(
        store->staging, resumable->kept.entry.id, STATE_NAME, &resumable->state_file, NULL));

    assert(resumable->data == NULL);
    if (opened == KEPT_OPENED)
        opened = kept_text_of(resumable->state_file, STATE_SIZE + END_SIZE, &state);
    if (opened == KEPT_OPENED)
        opened = open_data(resumable, state);
    free(state);
    return opened;
}

static enum kept_opened open_described(struct server *server, const char *id,
                                       struct description *description,
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
    if (opened == KEPT_NOT_OURS || opened == KEPT_UNREADABLE) {
        kept_upload_release(resumable);
        return opened;
    }
    /* Closes the files until a client continues. A worker may be reading the data. */
    assert((opened == KEPT_OUTCOME) == (resumable_state(resumable) == RESUMABLE_PUBLISHED));
    resumable_rest(resumable);
    *out_upload = &resumable->kept;
    return opened;
}

enum kept_opened resumable_files_open(struct server *server, const char *id,
                                      struct kept_upload **out_upload)
{
    struct description description = {.has_length = false};
    enum kept_opened opened =
        kept_description_read(&description_format, server->store->staging, id, &description, NULL);

    if (opened == KEPT_OPENED && description.has_length && has_its_name(&description))
        return open_described(server, id, &description, out_upload);
    for (size_t i = 0; i < RESUMABLE_TEXTS; i++)
        free(description.texts[i]);
    return opened == KEPT_OPENED ? KEPT_NOT_OURS : opened;
}
