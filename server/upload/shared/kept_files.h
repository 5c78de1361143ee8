/* The small text files in an upload's folder, which the next process reads. */
#ifndef UPLOAD_SHARED_KEPT_FILES_H
#define UPLOAD_SHARED_KEPT_FILES_H

#include <stddef.h>
#include <stdio.h>

#include "upload/shared/kept_uploads.h"

struct staged_file;
struct staging;

/* Translates the status of opening a file: only a missing file shows that there is no upload. */
enum kept_opened kept_opened_by(enum zt_status status);

/* Reads a whole file as text, which the caller frees; *out_text is set on success only. Returns
 * KEPT_NOT_OURS if the file is longer than most_bytes. */
enum kept_opened kept_text_of(struct staged_file *file, size_t most_bytes, char **out_text);
enum kept_opened kept_text_read(struct staging *staging, const char *id, const char *name,
                                size_t most_bytes, char **out_text);

/* A file that says what an upload is: lines of a key and its value. The first line has the format
 * and its version; the last is "end", without which the file is incomplete. */
struct kept_description {
    const char *name; /* of the file */
    const char *format;
    unsigned version; /* below 10; earlier versions are read too */
    /* Prints the lines between. */
    void (*print)(const struct kept_upload *upload, FILE *stream);
    /* Takes a line. Returns false if this server cannot have written it, or if out of memory. */
    bool (*take)(void *out_description, const char *key, char *value);
};

/* Makes the file; on a worker if is_durable. */
enum zt_status kept_description_write(const struct kept_description *description,
                                      const struct kept_upload *upload, bool is_durable,
                                      struct zt_error *error);

/* Calls take for each line. On failure some may have been taken. out_version may be NULL. */
enum kept_opened kept_description_read(const struct kept_description *description,
                                       struct staging *staging, const char *id,
                                       void *out_description, unsigned *out_version);

#endif
