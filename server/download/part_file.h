/* The local file of a pull: PATH.part, which one process writes, its journal PATH.part.json, and
 * the renaming of PATH.part to PATH. */
#ifndef DOWNLOAD_PART_FILE_H
#define DOWNLOAD_PART_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "zt/status.h"

struct part_file {
    const char *path; /* borrowed */
    char *part;
    char *journal;
    bool replaces_any; /* PATH may be replaced even if it is not a tensor file
                        * (download/replaceable.h) */
    int descriptor;    /* -1: not open */
};

/* Opens no file. Returns ZT_NO_MEMORY; ZT_ARGUMENT if PATH exists and is not a regular file. The
 * caller frees the file, also on failure. */
enum zt_status part_file_init(struct part_file *file, const char *path, bool replaces_any,
                              struct zt_error *error);
void part_file_free(struct part_file *file);

/* Opens or makes PATH.part, which then belongs to this process until it is closed. ZT_IO, also if
 * another process has it. */
enum zt_status part_file_open(struct part_file *file, struct zt_error *error);
void part_file_close(struct part_file *file);

/* Returns true if the open file is still empty of data. */
bool part_file_is_blank(const struct part_file *file);

/* Writes all bytes. ZT_IO. */
enum zt_status part_file_write(const struct part_file *file, uint64_t offset, const void *bytes,
                               size_t length, struct zt_error *error);

/* Sets the length. ZT_IO. */
enum zt_status part_file_truncate(const struct part_file *file, uint64_t size_bytes,
                                  struct zt_error *error);

/* Syncs the open file, renames it to PATH and removes the journal. ZT_IO; ZT_ARGUMENT if
 * PATH must not be replaced. If only syncing the folder failed, the file has its name, and the
 * message says so. */
enum zt_status part_file_publish(const struct part_file *file, struct zt_error *error);

/* Removes PATH.part and the journal, unless another file has that name now. The file is still open,
 * so no other process has it yet. */
void part_file_remove(const struct part_file *file);

#endif
