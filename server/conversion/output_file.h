/* The output of a command: complete and on the disk, or not there at all.
 *
 * Data goes to an unnamed file in the target's folder (to a hidden one if the file system has no
 * unnamed files), which gets the target's name when everything has been written. */
#ifndef CONVERSION_OUTPUT_FILE_H
#define CONVERSION_OUTPUT_FILE_H

#include <stdbool.h>

#include "zt/writer.h"

struct output_file {
    char *target;    /* the final path, links resolved */
    char *folder;    /* of the target */
    char *temporary; /* the path until it is renamed */
    bool is_named;   /* temporary exists */
    int descriptor;
    uint8_t *buffer;
    size_t filled;
    bool failed;         /* the last failure was the output's, not the input's */
    bool never_replaces; /* may be set until the file is published */
    bool has_replaced;   /* set when it is */
};

/* ZT_IO if the folder cannot be written, ZT_ARGUMENT if the target exists and is not a regular
 * file, ZT_NO_MEMORY. After success, call output_file_publish or output_file_discard. */
enum zt_status output_file_open(const char *path, struct output_file *out_file,
                                struct zt_error *error);

/* Appends. The write function of a zt_sink whose context is the file. */
enum zt_status output_file_write(void *file, const void *bytes, size_t length,
                                 struct zt_error *error);

/* Writes bytes at a position, past the buffer. Several threads may do so at once, and none may
 * append. ZT_IO; the caller then sets failed. */
enum zt_status output_file_write_at(const struct output_file *file, uint64_t offset,
                                    const void *bytes, size_t length, struct zt_error *error);

/* Writes out what is buffered. */
enum zt_status output_file_flush(struct output_file *file, struct zt_error *error);

/* The same, and frees the buffer: nothing can be appended any more. For files that are published
 * together with others. */
enum zt_status output_file_rest(struct output_file *file, struct zt_error *error);

/* Opens what has been written out like any other model, so that a file that our own reader refuses
 * is not published. Fails as zt_model_open does. */
enum zt_status output_file_check(struct output_file *file, struct zt_error *error);

/* Syncs the file and gives it the target's name, replacing an existing file unless it never does:
 * then ZT_ARGUMENT. On failure discards it. */
enum zt_status output_file_publish(struct output_file *file, struct zt_error *error);

/* Leaves nothing behind. */
void output_file_discard(struct output_file *file);

#endif
