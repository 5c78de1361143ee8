/* Which pieces of a file are here. A file has at most 16,384 pieces of one size, a power of two, so
 * that what is remembered of the largest is small. */
#ifndef CLIENT_PIECE_MAP_H
#define CLIENT_PIECE_MAP_H

#include <stdbool.h>
#include <stdint.h>

#define PIECES_MAX 16384

enum piece_state { PIECE_MISSING, PIECE_FLYING, PIECE_HERE };

struct piece_map {
    uint64_t size; /* of the file */
    uint64_t piece_bytes;
    uint32_t count;
    uint32_t here;
    uint8_t states[PIECES_MAX];
};

/* size: above 0. */
void piece_map_init(struct piece_map *map, uint64_t size);

uint64_t piece_map_begin(const struct piece_map *map, uint32_t piece);
/* Past the last byte. */
uint64_t piece_map_end(const struct piece_map *map, uint32_t piece);
uint32_t piece_map_at(const struct piece_map *map, uint64_t offset);

void piece_map_set(struct piece_map *map, uint32_t piece, enum piece_state state);
bool piece_map_is_whole(const struct piece_map *map);
/* Bytes of the pieces that are here. */
uint64_t piece_map_bytes(const struct piece_map *map);
/* Whether length bytes from offset are here. */
bool piece_map_has(const struct piece_map *map, uint64_t offset, uint64_t length);

/* The next run of missing pieces from a piece on, and after the last from the first: at most
 * `most` bytes, at least one piece. False: nothing is missing. */
bool piece_map_find(const struct piece_map *map, uint32_t from, uint64_t most, uint32_t *out_first,
                    uint32_t *out_end);

/* As text: two hexadecimal digits for eight pieces, the first in the lowest bit. */
#define PIECE_TEXT_SIZE (PIECES_MAX / 4 + 1)
void piece_map_write(const struct piece_map *map, char out_text[PIECE_TEXT_SIZE]);
/* Of a map that has just been made. False, and nothing is here: the text is not of such a map. */
bool piece_map_read(struct piece_map *map, const char *text);

#endif
