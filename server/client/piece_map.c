#include "client/piece_map.h"

#include <assert.h>
#include <string.h>

#include "base/hex.h"

#define PIECE_BYTES_LEAST ((uint64_t)1 << 16)

void piece_map_init(struct piece_map *map, uint64_t size)
{
    assert(size > 0);
    memset(map, 0, sizeof(*map));
    map->size = size;
    map->piece_bytes = PIECE_BYTES_LEAST;
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
    if (map->states[piece] == PIECE_HERE)
        map->here--;
    if (state == PIECE_HERE)
        map->here++;
    map->states[piece] = (uint8_t)state;
}

bool piece_map_is_whole(const struct piece_map *map)
{
    return map->here == map->count;
}

uint64_t piece_map_bytes(const struct piece_map *map)
{
    const uint64_t last = map->size - piece_map_begin(map, map->count - 1);

    if (map->states[map->count - 1] == PIECE_HERE)
        return (map->here - 1) * map->piece_bytes + last;
    return map->here * map->piece_bytes;
}

bool piece_map_has(const struct piece_map *map, uint64_t offset, uint64_t length)
{
    if (length == 0)
        return true;
    for (uint32_t i = piece_map_at(map, offset); i <= piece_map_at(map, offset + length - 1); i++)
        if (map->states[i] != PIECE_HERE)
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

bool piece_map_read(struct piece_map *map, const char *text)
{
    assert(map->here == 0);
    if (strlen(text) != ((size_t)map->count + 7) / 8 * 2)
        return false;
    for (uint32_t i = 0; i < map->count; i++) {
        uint8_t bits;

        if (!zt_hex_read_lower((struct zt_text){text + i / 8 * 2, 2}, &bits, 1)) {
            piece_map_init(map, map->size);
            return false;
        }
        if ((bits >> (i % 8) & 1) != 0)
            piece_map_set(map, i, PIECE_HERE);
    }
    return true;
}
