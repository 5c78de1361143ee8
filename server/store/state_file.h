/* Small binary files of the state folder: one a model, named after the hash of its path, made of
 * little-endian numbers and texts, with an XXH3-64 behind what it covers. Written beside and
 * renamed; read with every length checked. */
#ifndef STORE_STATE_FILE_H
#define STORE_STATE_FILE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STATE_FILE_HASH_SIZE 8

/* A folder of such files within the state folder. */
struct state_folder {
    int descriptor; /* -1: memory only */
    pthread_mutex_t lock;
};

/* Makes it if need be; state_folder may be -1. */
void state_folder_enter(struct state_folder *folder, int state_folder, const char *name);
void state_folder_leave(struct state_folder *folder);

/* Forgets files that are not those of the paths. */
void state_folder_sweep(struct state_folder *folder, const char *const *paths, size_t count);

/* --- writing --- */

struct state_image {
    uint8_t *bytes;
    size_t length;
    size_t capacity;
    bool failed; /* memory is out */
};

void state_put(struct state_image *image, const void *bytes, size_t length);
void state_put_number(struct state_image *image, uint64_t number, size_t width);
/* NULL is an absent text. */
void state_put_text(struct state_image *image, const char *text);
/* The hash of all bytes from that position on. */
void state_put_hash(struct state_image *image, size_t from);

/* Puts a file in the place of the path's, taken whole or not at all; or adds to its end, when the
 * file is that long now. No fsync: what a power cut tears is told by the hash and found out anew.
 * False with errno. */
bool state_file_write(struct state_folder *folder, const char *path,
                      const struct state_image *image);
bool state_file_append(struct state_folder *folder, const char *path, uint64_t length,
                       const struct state_image *image);

/* --- reading --- */

struct state_cursor {
    const uint8_t *at;
    size_t left;
    bool failed;
};

/* NULL, and failed, when less is left. */
const uint8_t *state_take(struct state_cursor *cursor, size_t length);
uint64_t state_take_number(struct state_cursor *cursor, size_t width);
/* A text of its own, to be freed; NULL for an absent one and on failure. */
char *state_take_text(struct state_cursor *cursor);
/* Takes a hash and compares it with that of the bytes from there to the cursor; a difference is
 * failure. */
bool state_take_hash(struct state_cursor *cursor, const uint8_t *from);

/* A whole file, to be freed; NULL when there is none, or it is no such file. */
uint8_t *state_file_read(const struct state_folder *folder, const char *path, size_t *out_length);

#endif
