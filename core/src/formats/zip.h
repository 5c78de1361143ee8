/* ZIP archives as NumPy writes and reads them (APPNOTE.TXT sections 4.3 to 4.5): directory and
 * local headers, with zip64.
 *
 * An archive has one volume: the entries, the central directory, and right after it the end record,
 * which ends the file. Rules: "zip §Directory …" for the directory, "zip §Entry …" for the rest. */
#ifndef ZT_FORMATS_ZIP_H
#define ZT_FORMATS_ZIP_H

#include <stdbool.h>

#include "zt/source.h"

#define ZIP_STORED   0
#define ZIP_DEFLATED 8

/* Length of a local header without name and extra field, and the most bytes that these two can
 * take. */
#define ZIP_LOCAL_MIN ((size_t)30)
#define ZIP_LOCAL_MAX (ZIP_LOCAL_MIN + 2 * (size_t)UINT16_MAX)

struct zip_directory {
    uint64_t offset; /* absolute; all entries are before it */
    uint64_t length;
    uint64_t entry_count; /* at most length / 46, a record's least length */
};

struct zip_entry {
    struct zt_text name; /* borrowed from the directory's bytes; any bytes */
    uint16_t flags;
    uint16_t method;
    uint32_t crc32;
    uint64_t stored_length;
    uint64_t length;
    uint64_t header_offset; /* absolute position of the local header */
    uint64_t offset;        /* absolute position of the record in the directory */
};

/* Finds the central directory. ZT_UNSUPPORTED for an archive of several volumes. */
enum zt_status zip_directory_find(struct zt_source *source, struct zip_directory *out_directory,
                                  struct zt_error *error);

/* Reads the record at position (relative to bytes, which are the whole directory) and moves it past
 * the record. */
enum zt_status zip_entry_read(const struct zip_directory *directory, const uint8_t *bytes,
                              uint64_t *position, struct zip_entry *out_entry,
                              struct zt_error *error);

/* Rejects entries that are encrypted, are patches, or use a method other than stored and deflated.
 * ZT_UNSUPPORTED. */
enum zt_status zip_entry_check_kind(const struct zip_entry *entry, struct zt_error *error);

/* Checks the signature of a local header and reads the header's length from its first ZIP_LOCAL_MIN
 * bytes. */
enum zt_status zip_local_measure(const struct zip_entry *entry, const uint8_t *header,
                                 size_t *out_length, struct zt_error *error);

/* Rejects a local header that contradicts the directory. header holds the whole local header. */
enum zt_status zip_local_check(const struct zip_entry *entry, const uint8_t *header,
                               struct zt_error *error);

#endif
