/* ZIP archives: end record, zip64 end record, central directory, local headers (APPNOTE.TXT 4.3.7,
 * 4.3.12 to 4.3.16). */
#include "formats/zip.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cut_off.h"
#include "base/little_endian.h"

#define END_MAGIC     0x06054B50u
#define END64_MAGIC   0x06064B50u
#define LOCATOR_MAGIC 0x07064B50u
#define ENTRY_MAGIC   0x02014B50u
#define LOCAL_MAGIC   0x04034B50u

#define END_BYTES     22
#define END64_BYTES   56
#define LOCATOR_BYTES 20
#define ENTRY_BYTES   46
/* Bytes of the zip64 end record that its own length does not count. */
#define END64_UNCOUNTED   12
#define END_MAX           (END_BYTES + (size_t)UINT16_MAX)
#define DIRECTORY_MAX     (1ull << 30)
#define EXTRA_ZIP64       1
#define FLAG_ENCRYPTED    0x0001u
#define FLAG_DESCRIPTOR   0x0008u
#define FLAG_PATCH        0x0020u
#define FLAG_STRONG       0x0040u
#define FLAG_MASKED       0x2000u
#define FLAGS_UNSUPPORTED (FLAG_ENCRYPTED | FLAG_PATCH | FLAG_STRONG | FLAG_MASKED)

/* --- the end records --- */

/* The end record. In a 16- or 32-bit field, all ones mean that the number is in the zip64
 * record. */
struct end {
    uint64_t offset; /* absolute; the directory must end here */
    uint64_t disks;  /* all disk numbers or'ed: 0 in an archive of one volume */
    uint64_t disk_entry_count;
    struct zip_directory directory;
};

/* The last position of an end record whose comment ends exactly at the end of the bytes; SIZE_MAX
 * if there is none. */
static size_t find_end(const uint8_t *bytes, size_t length)
{
    assert(length >= END_BYTES);
    for (size_t at = length - END_BYTES + 1; at-- > 0;)
        if (zt_load_le32(bytes + at) == END_MAGIC &&
            zt_load_le16(bytes + at + 20) == length - at - END_BYTES)
            return at;
    return SIZE_MAX;
}

/* Whether an end record ends, with its comment, before the bytes do: something was appended. */
static bool ends_earlier(const uint8_t *bytes, size_t length)
{
    assert(length >= END_BYTES);
    for (size_t at = 0; length - at >= END_BYTES; at++)
        if (zt_load_le32(bytes + at) == END_MAGIC &&
            zt_load_le16(bytes + at + 20) < length - at - END_BYTES)
            return true;
    return false;
}

static enum zt_status read_end(struct zt_source *source, struct end *out_end,
                               struct zt_error *error)
{
    uint64_t size = zt_source_size(source);
    size_t length = size < END_MAX ? (size_t)size : END_MAX;
    uint8_t *bytes;
    enum zt_status status;
    size_t at;

    if (size < END_BYTES)
        return zt_fail(error, ZT_INVALID, "zip §Directory EndRecord", 0,
                       CUT_OFF "a ZIP archive of %" PRIu64 " bytes", size);
    bytes = malloc(length);
    if (bytes == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET,
                       "no memory for the end of a ZIP archive");
    status = zt_source_read_at(source, size - length, bytes, length, error);
    if (status != ZT_OK)
        goto out;
    at = find_end(bytes, length);
    if (at == SIZE_MAX) {
        status = zt_fail(error, ZT_INVALID, "zip §Directory EndRecord", size - END_BYTES,
                         ends_earlier(bytes, length)
                             ? "bytes follow the end record of the ZIP archive"
                             : CUT_OFF "it does not end in the end record of a ZIP archive");
        goto out;
    }
    *out_end =
        (struct end){.offset = size - length + at,
                     .disks = (uint64_t)zt_load_le16(bytes + at + 4) | zt_load_le16(bytes + at + 6),
                     .disk_entry_count = zt_load_le16(bytes + at + 8),
                     .directory = {.entry_count = zt_load_le16(bytes + at + 10),
                                   .length = zt_load_le32(bytes + at + 12),
                                   .offset = zt_load_le32(bytes + at + 16)}};
out:
    free(bytes);
    return status;
}

/* A number in the end record must equal the one in the zip64 record or be all ones. */
static bool agrees(uint64_t narrow, uint64_t ones, uint64_t wide)
{
    return narrow == ones || narrow == wide;
}

static enum zt_status take_end64(const uint8_t *record, uint64_t record_at, struct end *end,
                                 struct zt_error *error)
{
    struct end wide = {.offset = record_at,
                       .disks = (uint64_t)zt_load_le32(record + 16) | zt_load_le32(record + 20),
                       .disk_entry_count = zt_load_le64(record + 24),
                       .directory = {.entry_count = zt_load_le64(record + 32),
                                     .length = zt_load_le64(record + 40),
                                     .offset = zt_load_le64(record + 48)}};

    if (!agrees(end->disk_entry_count, UINT16_MAX, wide.disk_entry_count) ||
        !agrees(end->directory.entry_count, UINT16_MAX, wide.directory.entry_count) ||
        !agrees(end->directory.length, UINT32_MAX, wide.directory.length) ||
        !agrees(end->directory.offset, UINT32_MAX, wide.directory.offset))
        return zt_fail(error, ZT_INVALID, "zip §Directory EndRecord", record_at,
                       "the two end records contradict each other");
    *end = wide;
    return ZT_OK;
}

/* If a locator precedes the end record, reads the zip64 end record, which takes precedence. */
static enum zt_status read_end64(struct zt_source *source, struct end *end, struct zt_error *error)
{
    uint8_t locator[LOCATOR_BYTES];
    uint8_t record[END64_BYTES];
    uint64_t locator_at = end->offset - LOCATOR_BYTES;
    enum zt_status status;
    uint64_t record_at;

    if (end->offset < LOCATOR_BYTES + END64_BYTES)
        return ZT_OK;
    status = zt_source_read_at(source, locator_at, locator, sizeof(locator), error);
    if (status != ZT_OK || zt_load_le32(locator) != LOCATOR_MAGIC)
        return status;
    record_at = zt_load_le64(locator + 8);
    if (record_at > locator_at - END64_BYTES)
        return zt_fail(error, ZT_INVALID, "zip §Directory EndRecord", locator_at,
                       "the zip64 end record is said to be at %" PRIu64, record_at);
    status = zt_source_read_at(source, record_at, record, sizeof(record), error);
    if (status != ZT_OK)
        return status;
    if (zt_load_le32(record) != END64_MAGIC ||
        zt_load_le64(record + 4) != locator_at - record_at - END64_UNCOUNTED)
        return zt_fail(error, ZT_INVALID, "zip §Directory EndRecord", record_at,
                       "there is no zip64 end record where the locator says");
    return take_end64(record, record_at, end, error);
}

enum zt_status zip_directory_find(struct zt_source *source, struct zip_directory *out_directory,
                                  struct zt_error *error)
{
    struct end end = {0};
    enum zt_status status = read_end(source, &end, error);
    const struct zip_directory *directory;

    if (status == ZT_OK)
        status = read_end64(source, &end, error);
    if (status != ZT_OK)
        return status;
    directory = &end.directory;
    if (end.disks != 0 || end.disk_entry_count != directory->entry_count)
        return zt_fail(error, ZT_UNSUPPORTED, NULL, end.offset,
                       "a ZIP archive of several volumes, which is not supported");
    if (directory->offset > end.offset || directory->length != end.offset - directory->offset)
        return zt_fail(error, ZT_INVALID, "zip §Directory Bounds", end.offset,
                       "a directory of %" PRIu64 " bytes at %" PRIu64
                       " does not end at the end record",
                       directory->length, directory->offset);
    if (directory->length > DIRECTORY_MAX)
        return zt_fail(error, ZT_INVALID, "zip §Directory TooLarge", end.offset,
                       "a directory of %" PRIu64 " bytes, more than 1 GiB", directory->length);
    if (directory->entry_count > directory->length / ENTRY_BYTES)
        return zt_fail(error, ZT_INVALID, "zip §Directory EntryCount", end.offset,
                       "%" PRIu64 " entries do not fit a directory of %" PRIu64 " bytes",
                       directory->entry_count, directory->length);
    assert(directory->offset + directory->length == end.offset);
    *out_directory = *directory;
    return ZT_OK;
}

/* --- extra fields --- */

/* Replaces numbers that are all ones by the numbers of the zip64 extra field, which holds only
 * these numbers, in the same order. False if the extra fields are malformed or a number is
 * missing. */
static bool widen(const uint8_t *extra, size_t length, uint64_t *const numbers[], size_t count)
{
    const uint8_t *field = NULL;
    size_t field_length = 0;

    /* Fewer than four bytes at the end are padding. */
    for (size_t at = 0; length - at >= 4;) {
        size_t size = zt_load_le16(extra + at + 2);

        if (size > length - at - 4)
            return false;
        if (zt_load_le16(extra + at) == EXTRA_ZIP64 && field == NULL) {
            field = extra + at + 4;
            field_length = size;
        }
        at += 4 + size;
        assert(at <= length);
    }
    for (size_t i = 0; i < count; i++) {
        if (*numbers[i] != UINT32_MAX)
            continue;
        if (field_length < 8)
            return false;
        *numbers[i] = zt_load_le64(field);
        field += 8;
        field_length -= 8;
    }
    return true;
}

/* --- the directory --- */

enum zt_status zip_entry_read(const struct zip_directory *directory, const uint8_t *bytes,
                              uint64_t *position, struct zip_entry *out_entry,
                              struct zt_error *error)
{
    uint64_t left = directory->length - *position;
    const uint8_t *record = bytes + *position;
    uint64_t at = directory->offset + *position;
    size_t name;
    size_t extra;
    uint64_t length;
    struct zip_entry entry;
    uint64_t *const numbers[] = {&entry.length, &entry.stored_length, &entry.header_offset};

    assert(*position <= directory->length);
    if (left < ENTRY_BYTES || zt_load_le32(record) != ENTRY_MAGIC)
        return zt_fail(error, ZT_INVALID, "zip §Directory Entry", at,
                       "no record of an entry begins here");
    name = zt_load_le16(record + 28);
    extra = zt_load_le16(record + 30);
    length = ENTRY_BYTES + name + extra + zt_load_le16(record + 32);
    entry = (struct zip_entry){.name = {(const char *)record + ENTRY_BYTES, name},
                               .flags = zt_load_le16(record + 8),
                               .method = zt_load_le16(record + 10),
                               .crc32 = zt_load_le32(record + 16),
                               .stored_length = zt_load_le32(record + 20),
                               .length = zt_load_le32(record + 24),
                               .header_offset = zt_load_le32(record + 42),
                               .offset = at};
    if (length > left)
        return zt_fail(error, ZT_INVALID, "zip §Directory Entry", at,
                       "the record of an entry is longer than the rest of the directory");
    if (!widen(record + ENTRY_BYTES + name, extra, numbers, 3))
        return zt_fail(error, ZT_INVALID, "zip §Directory Entry", at,
                       "the extra fields of an entry are malformed");
    if (zt_load_le16(record + 34) != 0 && zt_load_le16(record + 34) != UINT16_MAX)
        return zt_fail(error, ZT_UNSUPPORTED, NULL, at,
                       "a ZIP archive of several volumes, which is not supported");
    if (entry.header_offset > directory->offset ||
        directory->offset - entry.header_offset < ZIP_LOCAL_MIN ||
        entry.stored_length > directory->offset - entry.header_offset - ZIP_LOCAL_MIN)
        return zt_fail(error, ZT_INVALID, "zip §Entry Bounds", at,
                       "an entry of %" PRIu64 " bytes at %" PRIu64 " is not before the directory",
                       entry.stored_length, entry.header_offset);
    *position += length;
    assert(*position <= directory->length);
    *out_entry = entry;
    return ZT_OK;
}

enum zt_status zip_entry_check_kind(const struct zip_entry *entry, struct zt_error *error)
{
    if (entry->flags & (FLAG_ENCRYPTED | FLAG_STRONG | FLAG_MASKED))
        return zt_fail(error, ZT_UNSUPPORTED, NULL, entry->offset,
                       "the entry is encrypted, which is not supported");
    if (entry->flags & FLAGS_UNSUPPORTED)
        return zt_fail(error, ZT_UNSUPPORTED, NULL, entry->offset,
                       "the entry is a patch, which is not supported");
    if (entry->method != ZIP_STORED && entry->method != ZIP_DEFLATED)
        return zt_fail(
            error, ZT_UNSUPPORTED, NULL, entry->offset,
            "the entry is compressed by method %u; only stored and deflated entries are supported",
            entry->method);
    return ZT_OK;
}

/* --- local headers --- */

enum zt_status zip_local_measure(const struct zip_entry *entry, const uint8_t *header,
                                 size_t *out_length, struct zt_error *error)
{
    if (zt_load_le32(header) != LOCAL_MAGIC)
        return zt_fail(error, ZT_INVALID, "zip §Entry LocalHeader", entry->header_offset,
                       "no entry begins where the directory says");
    *out_length = ZIP_LOCAL_MIN + zt_load_le16(header + 26) + zt_load_le16(header + 28);
    return ZT_OK;
}

enum zt_status zip_local_check(const struct zip_entry *entry, const uint8_t *header,
                               struct zt_error *error)
{
    uint16_t flags = zt_load_le16(header + 6);
    size_t name = zt_load_le16(header + 26);
    uint64_t stored_length = zt_load_le32(header + 18);
    uint64_t length = zt_load_le32(header + 22);
    uint32_t crc32 = zt_load_le32(header + 14);
    uint64_t *const numbers[] = {&length, &stored_length};

    if (name != entry->name.length || memcmp(header + ZIP_LOCAL_MIN, entry->name.bytes, name) != 0)
        return zt_fail(error, ZT_INVALID, "zip §Entry LocalHeader", entry->header_offset,
                       "the entry's local header has another name");
    if (zt_load_le16(header + 8) != entry->method ||
        ((flags ^ entry->flags) & (FLAGS_UNSUPPORTED | FLAG_DESCRIPTOR)) != 0)
        return zt_fail(error, ZT_INVALID, "zip §Entry LocalHeader", entry->header_offset,
                       "the entry's local header has another method or other flags");
    if (!widen(header + ZIP_LOCAL_MIN + name, zt_load_le16(header + 28), numbers, 2))
        return zt_fail(error, ZT_INVALID, "zip §Entry LocalHeader", entry->header_offset,
                       "the extra fields of the entry's local header are malformed");
    /* A writer that did not know CRC-32 and sizes in advance put them after the data and into the
     * directory. */
    if ((flags & FLAG_DESCRIPTOR) != 0 && crc32 == 0 && stored_length == 0 && length == 0)
        return ZT_OK;
    if (stored_length != entry->stored_length || length != entry->length || crc32 != entry->crc32)
        return zt_fail(error, ZT_INVALID, "zip §Entry LocalHeader", entry->header_offset,
                       "the entry's local header has other sizes or another CRC-32");
    return ZT_OK;
}
