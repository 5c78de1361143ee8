/* ZIP archives as NumPy writes and reads them (APPNOTE.TXT sections 4.3 to 4.5): directory and
 * local headers, with zip64.
 *
 * One volume: entries, the central directory, and the end record right after it, which ends the
 * file. Rules: "npz §Directory …" for the directory, "npz §Entry …" for the rest. */
#ifndef ZT_FORMATS_ZIP_H
#define ZT_FORMATS_ZIP_H

#include <stdbool.h>

#include "zt/source.h"

#define ZIP_STORED   0
#define ZIP_DEFLATED 8

/* Local header without name and extra field, and the most that those can take. */
#define ZIP_LOCAL_MIN ((size_t)30)
#define ZIP_LOCAL_MAX (ZIP_LOCAL_MIN + 2 * (size_t)UINT16_MAX)

struct zip_directory {
    uint64_t offset; /* absolute; all entries lie before it */
    uint64_t length;
    uint64_t entry_count; /* at most length / 46 */
};

struct zip_entry {
    struct zt_text name; /* borrowed from the directory's bytes; any bytes */
    uint16_t flags;
    uint16_t method;
    uint32_t crc32;
    uint64_t stored_length;
    uint64_t length;
    uint64_t header_offset; /* absolute: of the local header */
    uint64_t offset;        /* absolute: of its record in the directory */
};

/* Finds the central directory. ZT_UNSUPPORTED for an archive of several volumes. */
enum zt_status zip_directory_find(struct zt_source *source, struct zip_directory *out_directory,
                                  struct zt_error *error);

/* Reads the record at position (relative to bytes, which are the whole directory) and moves it past
 * the record. */
enum zt_status zip_entry_read(const struct zip_directory *directory, const uint8_t *bytes,
                              uint64_t *position, struct zip_entry *out_entry,
                              struct zt_error *error);

/* Rejects entries that are encrypted, patches, or compressed by another method than deflate.
 * ZT_UNSUPPORTED. */
enum zt_status zip_entry_check_kind(const struct zip_entry *entry, struct zt_error *error);

/* Reads the length of the local header from its first ZIP_LOCAL_MIN bytes, and checks that it is
 * one. */
enum zt_status zip_local_measure(const struct zip_entry *entry, const uint8_t *header,
                                 size_t *out_length, struct zt_error *error);

/* Rejects a local header, which is there whole, that contradicts the directory. */
enum zt_status zip_local_check(const struct zip_entry *entry, const uint8_t *header,
                               struct zt_error *error);

#endif
