#include "download/piece_map.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/json_write.h"
#include "input/json_read.h"

#define PIECE_BYTES_LEAST ((uint64_t)1 << 16)
#define JOURNAL_MOST      65536
#define BOOT_SIZE         64
#define NUMBER_SIZE       24

/* --- the map --- */

void piece_map_init(struct piece_map *map, uint64_t size)
{
    assert(size > 0);
    memset(map, 0, sizeof(*map));
    map->size = size;
    map->piece_bytes = size == UINT64_MAX ? size : PIECE_BYTES_LEAST;
    while ((size - 1) / map->piece_bytes >= PIECES_MAX)
        map->piece_bytes *= 2;
    map->count = (uint32_t)((size - 1) / map->piece_bytes) + 1;
}

uint64_t piece_map_begin(const struct piece_map *map, uint32_t piece)
{
    return piece * map->piece_bytes;
}

uint64_t piece_map_end(const struct piece_map *map, uint32_t piece)
{
    return piece + 1 < map->count ? (piece + 1) * map->piece_bytes : map->size;
}

uint32_t piece_map_at(const struct piece_map *map, uint64_t offset)
{
    assert(offset < map->size);
    return (uint32_t)(offset / map->piece_bytes);
}

void piece_map_set(struct piece_map *map, uint32_t piece, enum piece_state state)
{
    assert(piece < map->count);
    if (map->states[piece] >= PIECE_COPIED)
        map->here--;
    if (state >= PIECE_COPIED)
        map->here++;
    map->copied += (uint32_t)(state == PIECE_COPIED) - (map->states[piece] == PIECE_COPIED);
    map->states[piece] = (uint8_t)state;
}

bool piece_map_is_whole(const struct piece_map *map)
{
    return map->here == map->count;
}

uint64_t piece_map_bytes(const struct piece_map *map)
{
    const uint64_t last = map->size - piece_map_begin(map, map->count - 1);

    if (map->states[map->count - 1] >= PIECE_COPIED)
        return (map->here - 1) * map->piece_bytes + last;
    return map->here * map->piece_bytes;
}

bool piece_map_has(const struct piece_map *map, uint64_t offset, uint64_t length)
{
    if (length == 0)
        return true;
    for (uint32_t i = piece_map_at(map, offset); i <= piece_map_at(map, offset + length - 1); i++)
        if (map->states[i] < PIECE_COPIED)
            return false;
    return true;
}

bool piece_map_find(const struct piece_map *map, uint32_t from, uint64_t most, uint32_t *out_first,
                    uint32_t *out_end)
{
    for (uint32_t i = 0; i < map->count; i++) {
        const uint32_t first = (from + i) % map->count;
        uint32_t end = first + 1;

        if (map->states[first] != PIECE_MISSING)
            continue;
        while (end < map->count && map->states[end] == PIECE_MISSING &&
               piece_map_end(map, end) - piece_map_begin(map, first) <= most)
            end++;
        *out_first = first;
        *out_end = end;
        return true;
    }
    return false;
}

void piece_map_write(const struct piece_map *map, char out_text[PIECE_TEXT_SIZE])
{
    char *to = out_text;

    for (uint32_t i = 0; i < map->count; i += 8) {
        uint8_t bits = 0;

        for (uint32_t j = i; j < i + 8 && j < map->count; j++)
            bits |= (uint8_t)((map->states[j] == PIECE_HERE) << (j - i));
        to = zt_hex_write(to, &bits, 1);
    }
}

/* --- reading the journal --- */

/* Leaves the map empty if the text does not fit. */
static void read_pieces(struct piece_map *map, const char *text)
{
    assert(map->here == 0);
    if (strlen(text) != ((size_t)map->count + 7) / 8 * 2)
        return;
    for (uint32_t i = 0; i < map->count; i++) {
        uint8_t bits;

        if (!zt_hex_read_lower((struct zt_text){text + i / 8 * 2, 2}, &bits, 1)) {
            piece_map_init(map, map->size);
            return;
        }
        if ((bits >> (i % 8) & 1) != 0)
            piece_map_set(map, i, PIECE_HERE);
    }
}

static void read_boot(char out_boot[BOOT_SIZE])
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    out_boot[0] = '\0';
    if (file != NULL && fgets(out_boot, BOOT_SIZE, file) != NULL)
        out_boot[strcspn(out_boot, "\n")] = '\0';
    if (file != NULL)
        fclose(file);
}

static struct json_t *read_object(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = malloc(JOURNAL_MOST);
    struct json_t *object = NULL;

    if (file != NULL && text != NULL)
        object = json_object_read((struct zt_text){text, fread(text, 1, JOURNAL_MOST, file)}, NULL);
    if (file != NULL)
        fclose(file);
    free(text);
    return object;
}

static bool has_text(const struct json_t *object, const char *name, const char *expected)
{
    struct zt_text text;

    return json_member_text(object, name, &text) == JSON_FOUND && zt_text_is(text, expected);
}

static bool is_of(const struct json_t *object, const char *url, const struct web_file *file)
{
    char size[NUMBER_SIZE];

    snprintf(size, sizeof(size), "%" PRIu64, file->size);
    return has_text(object, "url", url) && has_text(object, "etag", file->etag) &&
           has_text(object, "last_modified", file->last_modified) && has_text(object, "size", size);
}

void piece_journal_read(const char *path, const char *url, const struct web_file *file,
                        struct piece_map *map)
{
    struct json_t *object = read_object(path);
    char boot[BOOT_SIZE];
    struct zt_text pieces;

    read_boot(boot);
    if (object != NULL && is_of(object, url, file) &&
        json_member_text(object,
                         boot[0] != '\0' && has_text(object, "boot", boot) ? "pieces" : "synced",
                         &pieces) == JSON_FOUND)
        read_pieces(map, pieces.bytes);
    json_object_free(object);
}

/* --- writing it --- */

static void put(struct json *json, const char *name, const char *text)
{
    json_string_member(json, name, text);
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

static enum zt_status replace(const char *path, const struct json *json, struct zt_error *error)
{
    char *temporary = NULL;
    enum zt_status status = ZT_OK;

    if (json->failed || asprintf(&temporary, "%s~", path) < 0)
        return zt_fail_memory(error, "a journal");
    if (!write_text(temporary, json) || rename(temporary, path) != 0) {
        status = zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the journal cannot be written: %s",
                         strerrordesc_np(errno));
        unlink(temporary);
    }
    free(temporary);
    return status;
}

enum zt_status piece_journal_write(const char *path, const char *url, const struct web_file *file,
                                   const char *pieces, const char *synced, struct zt_error *error)
{
    enum zt_status status;
    char size[NUMBER_SIZE];
    char boot[BOOT_SIZE];
    struct json json;

    snprintf(size, sizeof(size), "%" PRIu64, file->size);
    read_boot(boot);
    json_init(&json, false);
    json_object_begin(&json);
    put(&json, "url", url);
    put(&json, "etag", file->etag);
    put(&json, "last_modified", file->last_modified);
    put(&json, "size", size);
    put(&json, "boot", boot);
    put(&json, "pieces", pieces);
    if (synced[0] != '\0')
        put(&json, "synced", synced);
    json_object_end(&json);
    status = replace(path, &json, error);
    json_free(&json);
    return status;
}
