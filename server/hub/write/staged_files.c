/* The file "staged" in the place of a staged object: lines of a key and its value, between a first
 * line that identifies the format and "end". What is printed is parsed strictly: anything else was
 * not written by this server, or not to its end. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/server.h"
#include "hub/write/staged_work.h"
#include "zt/digest.h"

#define FIRST_LINE "ztserve-staged 1"
#define LAST_LINE  "end"
/* Five lines; the longest is that of the repository. */
#define TEXT_SIZE 512

static void print_digest(const uint8_t sha256[32], char out_text[ZT_DIGEST_TEXT_SIZE])
{
    struct zt_digest digest = {.algorithm = ZT_DIGEST_SHA256, .length_bytes = 32};

    memcpy(digest.bytes, sha256, 32);
    zt_digest_format(&digest, out_text);
}

enum zt_status staged_describe(const struct staged_object *object, struct zt_error *error)
{
    struct store *store = object->kept.server->store;
    const char *id = object->kept.entry.id;
    char digest[ZT_DIGEST_TEXT_SIZE];
    char text[TEXT_SIZE];
    struct stored_upload *file;
    enum zt_status status;
    int length;

    print_digest(object->sha256, digest);
    length = snprintf(
        text, sizeof(text),
        FIRST_LINE "\nrepo %s\ndigest %s\nlength %" PRIu64 "\ncreated %" PRId64 "\n" LAST_LINE "\n",
        object->kept.entry.model, digest, object->length, (int64_t)object->kept.entry.created);
    status = store->ops->kept_create(store, id, STAGED_DESCRIPTION, 0, &file, error);
    if (status != ZT_OK)
        return status;
    status = store->ops->write_at(file, 0, text, (size_t)length, error);
    if (status == ZT_OK)
        status = store->ops->sync(file, error);
    store->ops->abandon(file);
    return status;
}

/* --- reading --- */

/* The value of the next line, which has this key. NULL: it has another. */
static char *take_value(char **rest, const char *key)
{
    const size_t length = strlen(key);
    char *line = strtok_r(NULL, "\n", rest);

    return line != NULL && strncmp(line, key, length) == 0 && line[length] == ' '
               ? line + length + 1
               : NULL;
}

static bool take_number(char **rest, const char *key, uint64_t *out_number)
{
    const char *value = take_value(rest, key);
    char *end;

    if (value == NULL || value[strspn(value, "0123456789")] != '\0' || value[0] == '\0')
        return false;
    *out_number = strtoull(value, &end, 10);
    return *end == '\0';
}

static bool take_digest(char **rest, uint8_t out_sha256[32])
{
    const char *value = take_value(rest, "digest");
    struct zt_digest digest;

    if (value == NULL || zt_digest_parse(zt_text_from(value), &digest, NULL) != ZT_OK ||
        digest.algorithm != ZT_DIGEST_SHA256)
        return false;
    memcpy(out_sha256, digest.bytes, 32);
    return true;
}

static bool take_repo(char **rest, char out_repo[HUB_REPO_SIZE])
{
    const char *value = take_value(rest, "repo");

    if (value == NULL || !hub_repo_is_valid(zt_text_from(value)))
        return false;
    snprintf(out_repo, HUB_REPO_SIZE, "%s", value);
    return true;
}

bool staged_description_parse(char *text, struct staged_description *out_description)
{
    char *rest;
    const char *line = strtok_r(text, "\n", &rest);

    if (line == NULL || strcmp(line, FIRST_LINE) != 0 || !take_repo(&rest, out_description->repo) ||
        !take_digest(&rest, out_description->sha256) ||
        !take_number(&rest, "length", &out_description->length) ||
        !take_number(&rest, "created", &out_description->created))
        return false;
    line = strtok_r(NULL, "\n", &rest);
    return line != NULL && strcmp(line, LAST_LINE) == 0;
}

/* Only a missing file shows that there is no object. */
static enum kept_opened opened_by(enum zt_status status)
{
    if (status == ZT_OK)
        return KEPT_OPENED;
    return status == ZT_NOT_FOUND ? KEPT_NOT_OURS : KEPT_UNREADABLE;
}

static enum kept_opened read_text(struct store *store, struct stored_upload *file,
                                  char out_text[TEXT_SIZE])
{
    const uint64_t length = store->ops->length(file);
    struct zt_source *source;

    if (length >= TEXT_SIZE)
        return KEPT_NOT_OURS;
    if (store->ops->read_back(file, &source, NULL) != ZT_OK ||
        zt_source_read_at(source, 0, out_text, (size_t)length, NULL) != ZT_OK)
        return KEPT_UNREADABLE;
    out_text[length] = '\0';
    return KEPT_OPENED;
}

static enum kept_opened read_description(struct store *store, const char *id,
                                         struct staged_description *out_description)
{
    char text[TEXT_SIZE];
    struct stored_upload *file;
    enum kept_opened opened =
        opened_by(store->ops->kept_open(store, id, STAGED_DESCRIPTION, &file, NULL));

    if (opened != KEPT_OPENED)
        return opened;
    opened = read_text(store, file, text);
    store->ops->abandon(file);
    if (opened == KEPT_OPENED && !staged_description_parse(text, out_description))
        return KEPT_NOT_OURS;
    return opened;
}

/* Data that is gone was published. */
static enum kept_opened look_at_data(struct store *store, const char *id, uint64_t length)
{
    struct stored_upload *file;
    enum kept_opened opened = opened_by(store->ops->kept_open(store, id, STAGED_DATA, &file, NULL));

    if (opened != KEPT_OPENED)
        return opened;
    if (store->ops->length(file) != length)
        opened = KEPT_NOT_OURS;
    store->ops->abandon(file);
    return opened;
}

enum kept_opened staged_files_open(struct server *server, const char *id,
                                   struct kept_upload **out_upload)
{
    struct staged_description description;
    struct staged_object *object;
    enum kept_opened opened = read_description(server->store, id, &description);

    if (opened == KEPT_OPENED)
        opened = look_at_data(server->store, id, description.length);
    if (opened != KEPT_OPENED)
        return opened;
    object = staged_new(server, id, description.repo);
    if (object == NULL)
        return KEPT_UNREADABLE;
    memcpy(object->sha256, description.sha256, sizeof(object->sha256));
    object->length = description.length;
    object->kept.entry.created = (time_t)description.created;
    atomic_store(&object->kept.entry.received, description.length);
    atomic_store(&object->kept.entry.length, description.length);
    atomic_init(&object->state, STAGED_READY);
    *out_upload = &object->kept;
    return KEPT_OPENED;
}
