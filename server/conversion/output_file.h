/* The output of a command, which appears only when it is complete and on disk.
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
    char *aside;     /* the path of the replaced file until others are published; NULL: none */
    bool is_named;   /* temporary exists */
    int descriptor;
    uint8_t *buffer;
    size_t filled;
    bool failed;         /* the last failure was a failure of the output, not of the input */
    bool never_replaces; /* may be set until the file is published */
    bool has_replaced;   /* set when it has replaced a file */
};

/* Returns ZT_IO if the folder cannot be written to, ZT_ARGUMENT if the target exists and is not a
 * regular file, ZT_NO_MEMORY. After success, call output_file_publish or output_file_discard. */
enum zt_status output_file_open(const char *path, struct output_file *out_file,
                                struct zt_error *error);

/* Appends bytes. This is the write function of a zt_sink whose context is the file. */
enum zt_status output_file_write(void *file, const void *bytes, size_t length,
                                 struct zt_error *error);

/* Writes bytes at a position, bypassing the buffer. Several threads may do so at once, but none may
 * append at the same time. Returns ZT_IO; the caller then sets failed. */
enum zt_status output_file_write_at(const struct output_file *file, uint64_t offset,
                                    const void *bytes, size_t length, struct zt_error *error);

/* Writes out the buffer. */
enum zt_status output_file_flush(struct output_file *file, struct zt_error *error);

/* Writes out the buffer and frees it, so that nothing more can be appended. For files that are
 * published together with others. */
enum zt_status output_file_rest(struct output_file *file, struct zt_error *error);

/* Opens the written file like any other model, so that a file that our own reader rejects is not
 * published. Fails as zt_model_open does. */
enum zt_status output_file_check(struct output_file *file, struct zt_error *error);

/* Syncs the file and gives it the target's name. Replaces an existing file, or returns ZT_ARGUMENT
 * if never_replaces is set. On failure discards the file, unless only syncing the folder failed:
 * the file then stays, and the message says so. */
enum zt_status output_file_publish(struct output_file *file, struct zt_error *error);

/* Publishes files together, the last one last: all of them, or none. The replaced files get
 * hidden names (".<name>.<8 digits>.replaced") until all are published, or their old names again
 * on failure. On failure discards all files; *out_failed is the number of the file that failed. */
enum zt_status output_files_publish(struct output_file *files, uint32_t count, uint32_t *out_failed,
                                    struct zt_error *error);

/* Removes all traces of the file. */
void output_file_discard(struct output_file *file);

#endif
