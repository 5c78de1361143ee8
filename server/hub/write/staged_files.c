/* The file "staged" in the folder of a staged object: lines of a key and its value. The first line
 * identifies the format, and the last is "end". Parsing is strict: any other text was not written
 * by this server, or not completely. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/hex.h"
#include "base/server.h"
#include "hub/write/staged_work.h"
#include "store/staging.h"
#include "upload/shared/kept_files.h"
#include "zt/digest.h"

#define FIRST_LINE "ztserve-staged 2"
/* Written before objects had owners. Such an object is found only by clients that may see
 * everything. */
#define OLD_FIRST_LINE "ztserve-staged 1"
#define LAST_LINE      "end"
/* Seven lines; the longest has the repository. */
#define TEXT_SIZE 640

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
    char owner[2 * CLIENT_SIZE];
    char text[TEXT_SIZE];
    struct staged_file *file;
    enum zt_status status;
    int length;

    print_digest(object->sha256, digest);
    /* Written in hex, because certificates may contain any name. */
    zt_hex_write(owner, object->owner, strlen(object->owner));
    length = snprintf(text, sizeof(text),
                      FIRST_LINE "\nrepo %s\nowner %s\ndigest %s\nlength %" PRIu64
                                 "\ncreated %" PRId64 "\n" LAST_LINE "\n",
                      object->kept.entry.model, owner, digest, object->length,
                      (int64_t)object->kept.entry.created);
    status = staging_folder_create(store->staging, id, STAGED_DESCRIPTION, 0, &file, error);
    if (status != ZT_OK)
        return status;
    status = staged_file_write_at(file, 0, text, (size_t)length, error);
    if (status == ZT_OK)
        status = staged_file_sync(file, error);
    staged_file_close(file);
    return status;
}

/* --- reading --- */

/* Returns the value of the next line if it has this key; otherwise NULL. */
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

    return value != NULL && zt_decimal_read(zt_text_from(value), UINT64_MAX, out_number);
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

static bool take_owner(char **rest, char out_owner[CLIENT_SIZE])
{
    const char *value = take_value(rest, "owner");
    const size_t length = value != NULL ? strlen(value) / 2 : 0;

    if (value == NULL || length >= CLIENT_SIZE ||
        !zt_hex_read_lower(zt_text_from(value), out_owner, length))
        return false;
    out_owner[length] = '\0';
    return strlen(out_owner) == length;
}

struct description {
    char repo[HUB_REPO_SIZE];
    char owner[CLIENT_SIZE]; /* empty in files of the first version */
    uint8_t sha256[32];
    uint64_t length;
    uint64_t created;
};

/* Changes the text. Returns false if it is incomplete or not ours. */
static bool parse_description(char *text, struct description *out_description)
{
    char *rest;
    const char *line = strtok_r(text, "\n", &rest);
    const bool is_old = line != NULL && strcmp(line, OLD_FIRST_LINE) == 0;

    out_description->owner[0] = '\0';
    if (line == NULL || (!is_old && strcmp(line, FIRST_LINE) != 0) ||
        !take_repo(&rest, out_description->repo) ||
        (!is_old && !take_owner(&rest, out_description->owner)) ||
        !take_digest(&rest, out_description->sha256) ||
        !take_number(&rest, "length", &out_description->length) ||
        !take_number(&rest, "created", &out_description->created))
        return false;
    line = strtok_r(NULL, "\n", &rest);
    return line != NULL && strcmp(line, LAST_LINE) == 0;
}

static enum kept_opened read_description(struct store *store, const char *id,
                                         struct description *out_description)
{
    char *text = NULL;
    enum kept_opened opened =
        kept_text_read(store->staging, id, STAGED_DESCRIPTION, TEXT_SIZE - 1, &text);

    if (opened == KEPT_OPENED && !parse_description(text, out_description))
        opened = KEPT_NOT_OURS;
    free(text);
    return opened;
}

/* Missing data was published. */
static enum kept_opened look_at_data(struct store *store, const char *id, uint64_t length)
{
    struct staged_file *file;
    enum kept_opened opened =
        kept_opened_by(staging_folder_open(store->staging, id, STAGED_DATA, &file, NULL));

    if (opened != KEPT_OPENED)
        return opened;
    if (staged_file_length(file) != length)
        opened = KEPT_NOT_OURS;
    staged_file_close(file);
    return opened;
}

enum kept_opened staged_files_open(struct server *server, const char *id,
                                   struct kept_upload **out_upload)
{
    struct description description;
    struct staged_object *object;
    enum kept_opened opened = read_description(server->store, id, &description);

    if (opened == KEPT_OPENED)
        opened = look_at_data(server->store, id, description.length);
    if (opened != KEPT_OPENED)
        return opened;
    object = staged_new(server, id, description.repo, description.owner);
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
