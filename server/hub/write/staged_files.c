/* The file "staged" in the folder of a staged object, its description. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/decimal.h"
#include "base/hex.h"
#include "base/server.h"
#include "hub/write/staged_work.h"
#include "store/staging.h"
#include "upload/shared/kept_files.h"
#include "zt/digest.h"

/* --- the description --- */

static void print_description(const struct kept_upload *kept, FILE *stream)
{
    const struct staged_object *object = (const struct staged_object *)kept;
    struct zt_digest sha256 = {.algorithm = ZT_DIGEST_SHA256, .length_bytes = 32};
    char digest[ZT_DIGEST_TEXT_SIZE];
    char owner[2 * CLIENT_SIZE];

    assert(kept->entry.model[0] != '\0');
    memcpy(sha256.bytes, object->sha256, 32);
    zt_digest_format(&sha256, digest);
    /* Written in hex, because certificates may contain any name. */
    zt_hex_write(owner, object->owner, strlen(object->owner));
    fprintf(stream, "repo %s\nowner %s\ndigest %s\nlength %" PRIu64 "\ncreated %" PRId64 "\n",
            kept->entry.model, owner, digest, object->length, (int64_t)kept->entry.created);
}

struct description {
    char repo[HUB_REPO_SIZE]; /* empty: it is missing */
    char owner[CLIENT_SIZE];  /* empty in files of the first version: the object is found only by
                               * clients that may see everything */
    uint8_t sha256[32];
    uint64_t length;
    uint64_t created;
    bool has_owner;
    bool has_digest;
    bool has_length;
};

static bool take_repo(struct description *description, const char *value)
{
    snprintf(description->repo, sizeof(description->repo), "%s", value);
    return hub_repo_is_valid(zt_text_from(value));
}

static bool take_owner(struct description *description, const char *value)
{
    const size_t length = strlen(value) / 2;

    if (length >= CLIENT_SIZE ||
        !zt_hex_read_lower(zt_text_from(value), description->owner, length))
        return false;
    description->owner[length] = '\0';
    description->has_owner = true;
    return strlen(description->owner) == length;
}

static bool take_digest(struct description *description, const char *value)
{
    struct zt_digest digest;

    if (zt_digest_parse(zt_text_from(value), &digest, NULL) != ZT_OK ||
        digest.algorithm != ZT_DIGEST_SHA256)
        return false;
    memcpy(description->sha256, digest.bytes, 32);
    description->has_digest = true;
    return true;
}

static bool take_line(void *out_description, const char *key, char *value)
{
    struct description *description = out_description;

    if (strcmp(key, "repo") == 0)
        return take_repo(description, value);
    if (strcmp(key, "owner") == 0)
        return take_owner(description, value);
    if (strcmp(key, "digest") == 0)
        return take_digest(description, value);
    if (strcmp(key, "created") == 0)
        return zt_decimal_read(zt_text_from(value), UINT64_MAX, &description->created);
    description->has_length =
        strcmp(key, "length") == 0 &&
        zt_decimal_read(zt_text_from(value), UINT64_MAX, &description->length);
    return description->has_length;
}

static const struct kept_description description_format = {
    .name = STAGED_DESCRIPTION,
    .format = "ztserve-staged",
    .version = 2, /* the first had no owner */
    .print = print_description,
    .take = take_line,
};

enum zt_status staged_describe(const struct staged_object *object, struct zt_error *error)
{
    return kept_description_write(&description_format, &object->kept, true, error);
}

/* --- opening --- */

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
    struct description description = {.has_length = false};
    struct staged_object *object;
    unsigned version;
    enum kept_opened opened = kept_description_read(&description_format, server->store->staging, id,
                                                    &description, &version);

    if (opened == KEPT_OPENED &&
        (description.repo[0] == '\0' || description.has_owner != (version > 1) ||
         !description.has_digest || !description.has_length))
        return KEPT_NOT_OURS;
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
