/* Reads the small text files that an earlier process left in an upload's folder. */
#ifndef UPLOAD_SHARED_KEPT_FILES_H
#define UPLOAD_SHARED_KEPT_FILES_H

#include <stddef.h>

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

#endif
