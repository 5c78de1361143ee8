/* Small binary files in the state folder (state_place.h): one for each model, named by the hash of
 * its path, made of records (base/record.h). A file is written under another name and then
 * renamed. */
#ifndef STORE_STATE_FILE_H
#define STORE_STATE_FILE_H

#include <pthread.h>

#include "base/record.h"
#include "store/state_place.h"

/* A folder of files within the state folder. */
struct state_folder {
    int descriptor; /* -1: saving is off */
    pthread_mutex_t lock;
};

/* Opens the folder of that name, and makes it if necessary. state_folder may be -1. */
void state_folder_enter(struct state_folder *folder, int state_folder, const char *name);
void state_folder_leave(struct state_folder *folder);

/* Removes the files of all but the given paths. */
void state_folder_sweep(struct state_folder *folder, const char *const *paths, size_t count);

/* Replaces the file of a path atomically, or appends to it if it is length bytes long. There is no
 * fsync: after a power cut the record's hash reveals damage, and the state is computed again.
 * Returns false on failure. */
bool state_file_write(struct state_folder *folder, const char *path,
                      const struct record_writer *image);
bool state_file_append(struct state_folder *folder, const char *path, uint64_t length,
                       const struct record_writer *image);

/* Reads the whole file of a path. The caller frees it. Returns NULL if it cannot be read. */
uint8_t *state_file_read(const struct state_folder *folder, const char *path, size_t *out_length);

#endif
