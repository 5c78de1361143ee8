/* Where bytes come from: a file, memory, or anything else behind four functions.
 *
 * A source is a fixed run of bytes. Readers need nothing else, so every reader can be tested on a
 * buffer. All functions except close may be called from several threads at once. */
#ifndef ZT_SOURCE_H
#define ZT_SOURCE_H

#include <stdbool.h>

#include "zt/status.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

struct zt_source;

struct zt_source_ops {
    /* Length in bytes when the source was opened. */
    uint64_t (*size)(const struct zt_source *source);
    /* Reads exactly length bytes at offset. ZT_IO if reading fails or the bytes do not exist, for
     * example because the file has been truncated. */
    enum zt_status (*read_at)(struct zt_source *source, uint64_t offset, void *buffer,
                              size_t length, struct zt_error *error);
    /* The whole source as memory, borrowed until close; NULL if it cannot be mapped. If the file is
     * truncated, touching the missing bytes raises SIGBUS: only pass the memory to system calls, or
     * map files that nobody changes. */
    const uint8_t *(*map)(struct zt_source *source);
    void (*close)(struct zt_source *source);
};

struct zt_source {
    const struct zt_source_ops *ops;
};

uint64_t zt_source_size(const struct zt_source *source);
enum zt_status zt_source_read_at(struct zt_source *source, uint64_t offset, void *buffer,
                                 size_t length, struct zt_error *error);
const uint8_t *zt_source_map(struct zt_source *source);
/* Takes NULL. */
void zt_source_close(struct zt_source *source);

/* Lets the library read from the mappings of files that are in the page cache, which is quicker
 * than read_at. For programs, at their start: it handles SIGBUS, so that a file that is truncated
 * while it is read gives ZT_IO. Without this call nothing touches a mapping. */
void zt_source_allow_mapped(void);

/* Opens a regular file for reading. ZT_IO if it cannot be opened or is not a regular file;
 * ZT_NO_MEMORY. Closed with zt_source_close, like every source. */
enum zt_status zt_source_open_file(const char *path, struct zt_source **out_source,
                                   struct zt_error *error);

/* Takes ownership of an open descriptor of a regular file, which is closed with the source. On
 * failure (ZT_IO, ZT_NO_MEMORY) the descriptor stays the caller's. */
enum zt_status zt_source_from_descriptor(int descriptor, struct zt_source **out_source,
                                         struct zt_error *error);

/* Borrows bytes, which must outlive the source. ZT_NO_MEMORY. */
enum zt_status zt_source_from_memory(const void *bytes, size_t length,
                                     struct zt_source **out_source, struct zt_error *error);

/* The descriptor of a file source, borrowed; -1 for any other source. */
int zt_source_descriptor(const struct zt_source *source);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
