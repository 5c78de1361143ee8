/* Small state files: read as a whole, replaced as a whole or not at all, and appended to. They are
 * not synced: their content has a checksum, which reveals damage by a power failure.
 *
 * folder is the descriptor of an open folder, and name a file in it. A link, a device or a folder
 * is not accepted as a state file. Only one process may write a file. */
#ifndef DISK_WHOLE_FILE_H
#define DISK_WHOLE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Appended to a file's name while its replacement is written. */
#define WHOLE_FILE_NEW_SUFFIX ".new"

/* Reads the whole file; the result is followed by NUL, and the caller must free it. Returns NULL
 * with errno if it cannot be read; errno is EFBIG if it is longer than most_bytes. */
uint8_t *whole_file_read(int folder, const char *name, uint64_t most_bytes, size_t *out_length);

/* Replaces or creates the file. On failure returns false with errno, and the file is unchanged. */
bool whole_file_replace(int folder, const char *name, const void *bytes, size_t length);

/* Appends to a file that is old_bytes long (WHOLE_FILE_ANY_LENGTH: not checked). On failure returns
 * false with errno, and no bytes were appended; a file that cannot be truncated to its old length
 * is removed. */
bool whole_file_append(int folder, const char *name, uint64_t old_bytes, const void *bytes,
                       size_t length);
#define WHOLE_FILE_ANY_LENGTH UINT64_MAX

#endif
