/* A file that a command makes: it is there whole, and on the disk, or not at all.
 *
 * Data goes to a file without a name in the target's folder (where the file system has none, to a
 * hidden one), which takes the target's name when all is written. */
#ifndef COMMANDS_OUTPUT_FILE_H
#define COMMANDS_OUTPUT_FILE_H

#include <stdbool.h>

#include "zt/writer.h"

struct output_file {
    char *target;    /* the path that it will have; a link was followed */
    char *folder;    /* where that lies */
    char *temporary; /* the name that it has meanwhile, or will have for a moment */
    bool is_named;
    int descriptor;
    uint8_t *buffer;
    size_t filled;
    /* Whether the last failure was the output's own. */
    bool failed;
};

/* ZT_IO when the folder cannot be written to, ZT_ARGUMENT when the target is there and is not a
 * regular file; ZT_NO_MEMORY. On success to be ended by output_file_publish or output_file_discard.
 */
enum zt_status output_file_open(const char *path, struct output_file *out_file,
                                struct zt_error *error);

/* Appends; a sink's function with the file as context. */
enum zt_status output_file_write(void *file, const void *bytes, size_t length,
                                 struct zt_error *error);

/* Writes what is buffered. */
enum zt_status output_file_flush(struct output_file *file, struct zt_error *error);

/* Puts the file on the disk and gives it its name, in place of what had it. Discards it on failure.
 */
enum zt_status output_file_publish(struct output_file *file, struct zt_error *error);

/* Leaves nothing. */
void output_file_discard(struct output_file *file);

#endif
