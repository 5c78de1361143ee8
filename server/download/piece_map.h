/* The pieces of a file that have arrived, and the journal of a pull, which remembers them for the
 * next process. A file has at most 16,384 pieces of one size, a power of two, so that the map of
 * the largest file is small.
 *
 * Written pieces survive the end of a process, but survive a crash of the machine only once they
 * are synced. The journal therefore names the boot in which it was written; after another boot only
 * the synced pieces count. */
#ifndef DOWNLOAD_PIECE_MAP_H
#define DOWNLOAD_PIECE_MAP_H

#include "client/web_file.h"

#define PIECES_MAX 16384

/* COPIED: here, but at least in part from a local file, which may be wrong
 * (download/copied_bytes.h). The journal leaves it out. */
enum piece_state { PIECE_MISSING, PIECE_FLYING, PIECE_COPIED, PIECE_HERE };

struct piece_map {
    uint64_t size; /* of the file */
    uint64_t piece_bytes;
    uint32_t count;
    uint32_t here;   /* pieces that have arrived */
    uint32_t copied; /* of these */
    uint8_t states[PIECES_MAX];
};

/* size: above 0; UINT64_MAX: unknown, for a file of a single piece. */
void piece_map_init(struct piece_map *map, uint64_t size);

uint64_t piece_map_begin(const struct piece_map *map, uint32_t piece);
/* Past the last byte. */
uint64_t piece_map_end(const struct piece_map *map, uint32_t piece);
uint32_t piece_map_at(const struct piece_map *map, uint64_t offset);

void piece_map_set(struct piece_map *map, uint32_t piece, enum piece_state state);
bool piece_map_is_whole(const struct piece_map *map);
/* Bytes of the pieces that have arrived. */
uint64_t piece_map_bytes(const struct piece_map *map);
/* Returns true if length bytes from offset have arrived. */
bool piece_map_has(const struct piece_map *map, uint64_t offset, uint64_t length);

/* Finds the next run of missing pieces at or after a piece, wrapping at the end: at most `most`
 * bytes, at least one piece. False: no piece is missing. */
bool piece_map_find(const struct piece_map *map, uint32_t from, uint64_t most, uint32_t *out_first,
                    uint32_t *out_end);

/* As text: two hexadecimal digits for eight pieces, the first in the lowest bit. */
#define PIECE_TEXT_SIZE (PIECES_MAX / 4 + 1)
void piece_map_write(const struct piece_map *map, char out_text[PIECE_TEXT_SIZE]);

/* The journal at a path, JSON of at most some KiB: the pieces of one version of the file at a URL,
 * as the user typed it. */

/* Reads the pieces into an empty map; leaves it empty if the journal does not exist, is damaged, or
 * is of another URL or version. */
void piece_journal_read(const char *path, const char *url, const struct web_file *file,
                        struct piece_map *map);

/* Replaces the journal. synced: the pieces as of the last sync (empty: none). ZT_IO,
 * ZT_NO_MEMORY. */
enum zt_status piece_journal_write(const char *path, const char *url, const struct web_file *file,
                                   const char *pieces, const char *synced, struct zt_error *error);

#endif
