#include "client/pull_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_write.h"
#include "input/json_read.h"

#define JOURNAL_MOST 65536
#define BOOT_SIZE    64
#define NUMBER_SIZE  24

/* --- reading --- */

static void read_boot(char out_boot[BOOT_SIZE])
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    out_boot[0] = '\0';
    if (file != NULL && fgets(out_boot, BOOT_SIZE, file) != NULL)
        out_boot[strcspn(out_boot, "\n")] = '\0';
    if (file != NULL)
        fclose(file);
}

static char *read_text(const char *path, size_t *out_length)
{
    FILE *file = fopen(path, "re");
    char *text = malloc(JOURNAL_MOST);

    if (file != NULL && text != NULL)
        *out_length = fread(text, 1, JOURNAL_MOST, file);
    if (file == NULL) {
        free(text);
        return NULL;
    }
    fclose(file);
    return text;
}

static bool has_text(const struct json_t *object, const char *name, const char *expected)
{
    struct zt_text text;

    return json_member_text(object, name, &text) == JSON_FOUND && zt_text_is(text, expected);
}

static bool is_of(const struct json_t *object, const struct pull_journal *journal)
{
    char size[NUMBER_SIZE];

    snprintf(size, sizeof(size), "%" PRIu64, journal->file->size);
    return has_text(object, "url", journal->url) && has_text(object, "etag", journal->file->etag) &&
           has_text(object, "last_modified", journal->file->last_modified) &&
           has_text(object, "size", size);
}

void pull_journal_read(const struct pull_journal *journal, struct piece_map *map)
{
    size_t length = 0;
    char *text = read_text(journal->path, &length);
    struct json_t *object = NULL;
    char boot[BOOT_SIZE];
    struct zt_text pieces;

    read_boot(boot);
    if (text != NULL)
        object = json_object_read((struct zt_text){text, length}, NULL);
    if (object != NULL && is_of(object, journal) &&
        json_member_text(object,
                         boot[0] != '\0' && has_text(object, "boot", boot) ? "pieces" : "synced",
                         &pieces) == JSON_FOUND)
        (void)piece_map_read(map, pieces.bytes);
    json_object_free(object);
    free(text);
}

/* --- writing --- */

static void put(struct json *json, const char *name, const char *text)
{
    json_key_string(json, name);
    json_put_string(json, text);
}

static void describe(struct json *json, const struct pull_journal *journal,
                     const struct piece_map *map, const char *synced)
{
    char pieces[PIECE_TEXT_SIZE];
    char size[NUMBER_SIZE];
    char boot[BOOT_SIZE];

    snprintf(size, sizeof(size), "%" PRIu64, journal->file->size);
    read_boot(boot);
    piece_map_write(map, pieces);
    json_object_begin(json);
    put(json, "url", journal->url);
    put(json, "etag", journal->file->etag);
    put(json, "last_modified", journal->file->last_modified);
    put(json, "size", size);
    put(json, "boot", boot);
    put(json, "pieces", pieces);
    if (synced != NULL)
        put(json, "synced", synced);
    json_object_end(json);
}

static bool write_text(const char *path, const struct json *json)
{
    FILE *file = fopen(path, "we");
    bool written;

    if (file == NULL)
        return false;
    written = fwrite(json->text, 1, json->length, file) == json->length;
    return fclose(file) == 0 && written;
}

enum zt_status pull_journal_write(const struct pull_journal *journal, const struct piece_map *map,
                                  const char *synced, struct zt_error *error)
{
    enum zt_status status = ZT_OK;
    char *temporary = NULL;
    struct json json;

    json_init(&json, false);
    describe(&json, journal, map, synced);
    if (json.failed || asprintf(&temporary, "%s~", journal->path) < 0) {
        temporary = NULL;
        status = zt_fail_memory(error, "a journal");
    } else if (!write_text(temporary, &json) || rename(temporary, journal->path) != 0) {
        status = zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the journal cannot be written: %s",
                         strerrordesc_np(errno));
        unlink(temporary);
    }
    free(temporary);
    json_free(&json);
    return status;
}
