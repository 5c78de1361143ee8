/* NPZ: a ZIP archive (APPNOTE 6.3) of NPY files, stored uncompressed so that they can be read in
 * place.
 *
 * An extra field in front of each file aligns its data to a multiple of 64. CRCs are known in
 * advance, so no descriptor follows the data. Times are the earliest possible, so that equal models
 * give equal archives. */
#include <assert.h>

#include "base/percent.h"
#include "write/planning.h"

#define LOCAL_SIGNATURE   0x04034b50
#define CENTRAL_SIGNATURE 0x02014b50
#define END_SIGNATURE     0x06054b50
#define END64_SIGNATURE   0x06064b50
#define LOCATOR_SIGNATURE 0x07064b50

#define LOCAL_LENGTH 30
/* Section 4.4.3: versions needed for stored files, and for files of more than 4 GiB. */
#define VERSION_STORED 20
#define VERSION_ZIP64  45
/* Names are UTF-8. */
#define FLAG_UTF8 0x0800
/* 1980-01-01 */
#define DOS_DATE 0x0021
/* The extra field for alignment and padding that zipalign writes. */
#define PADDING_FIELD 0xD935
/* The field's head and the alignment. */
#define PADDING_MIN    6
#define ZIP64_FIELD    0x0001
#define LIMIT32        UINT32_MAX
#define LIMIT16        UINT16_MAX
#define DATA_ALIGNMENT 64

/* One entry of the archive. */
struct entry {
    struct zt_buffer name;
    struct zt_buffer head; /* of the NPY file */
    uint64_t offset;       /* of the local header */
    uint64_t length;       /* of the NPY file */
    uint32_t crc;
};

/* --- names --- */

static bool is_hex(char digit)
{
    return (digit >= '0' && digit <= '9') || (digit >= 'A' && digit <= 'F') ||
           (digit >= 'a' && digit <= 'f');
}

static bool must_encode(struct zt_text name, size_t at)
{
    unsigned char byte = (unsigned char)name.bytes[at];

    if (byte == '%')
        return name.length - at > 2 && is_hex(name.bytes[at + 1]) && is_hex(name.bytes[at + 2]);
    return byte < 0x20 || byte == 0x7F || byte == '/' || byte == '\\' || byte == ':';
}

/* Writes a name with %XX for characters that a name in an archive cannot have or that could lead
 * out of a folder, and for percent signs that would be read as the start of a %XX. Reading the
 * archive restores the name. */
static void put_name(struct zt_buffer *buffer, struct zt_text name)
{
    for (size_t i = 0; i < name.length; i++) {
        char encoded[ZT_PERCENT_LENGTH];

        zt_percent_put(encoded, name.bytes[i]);
        if (must_encode(name, i))
            zt_buffer_append(buffer, encoded, sizeof(encoded));
        else
            zt_buffer_append(buffer, &name.bytes[i], 1);
    }
    zt_buffer_append(buffer, ".npy", 4);
}

/* --- headers --- */

static bool is_large(const struct entry *entry)
{
    return entry->length >= LIMIT32;
}

/* Writes the fields that both headers of an entry share, from the version needed to the length of
 * the name. */
static void put_shared_fields(struct zt_buffer *buffer, const struct entry *entry, bool zip64)
{
    uint32_t length = is_large(entry) ? LIMIT32 : (uint32_t)entry->length;

    zt_buffer_append_le16(buffer, zip64 ? VERSION_ZIP64 : VERSION_STORED);
    zt_buffer_append_le16(buffer, FLAG_UTF8);
    zt_buffer_append_le16(buffer, 0);
    zt_buffer_append_le16(buffer, 0);
    zt_buffer_append_le16(buffer, DOS_DATE);
    zt_buffer_append_le32(buffer, entry->crc);
    zt_buffer_append_le32(buffer, length);
    zt_buffer_append_le32(buffer, length);
    zt_buffer_append_le16(buffer, (uint16_t)entry->name.length);
}

static void put_padding_field(struct zt_buffer *buffer, size_t padding)
{
    static const uint8_t zeros[DATA_ALIGNMENT] = {0};

    assert(padding <= DATA_ALIGNMENT);
    zt_buffer_append_le16(buffer, PADDING_FIELD);
    zt_buffer_append_le16(buffer, (uint16_t)(2 + padding));
    zt_buffer_append_le16(buffer, DATA_ALIGNMENT);
    zt_buffer_append(buffer, zeros, padding);
}

static void put_local_header(struct zt_buffer *buffer, const struct entry *entry)
{
    size_t zip64_length = is_large(entry) ? 20 : 0;
    uint64_t end = entry->offset + LOCAL_LENGTH + entry->name.length + zip64_length + PADDING_MIN;
    size_t padding = (size_t)(zt_align(end, DATA_ALIGNMENT) - end);

    zt_buffer_append_le32(buffer, LOCAL_SIGNATURE);
    put_shared_fields(buffer, entry, is_large(entry));
    zt_buffer_append_le16(buffer, (uint16_t)(zip64_length + PADDING_MIN + padding));
    zt_buffer_append(buffer, entry->name.bytes, entry->name.length);
    if (is_large(entry)) {
        zt_buffer_append_le16(buffer, ZIP64_FIELD);
        zt_buffer_append_le16(buffer, 16);
        zt_buffer_append_le64(buffer, entry->length);
        zt_buffer_append_le64(buffer, entry->length);
    }
    put_padding_field(buffer, padding);
    assert(buffer->failed || (entry->offset + buffer->length) % DATA_ALIGNMENT == 0);
}

static void put_central_header(struct zt_buffer *buffer, const struct entry *entry)
{
    bool far = entry->offset >= LIMIT32;
    uint16_t zip64_data = (uint16_t)((is_large(entry) ? 16 : 0) + (far ? 8 : 0));

    zt_buffer_append_le32(buffer, CENTRAL_SIGNATURE);
    zt_buffer_append_le16(buffer, VERSION_ZIP64);
    put_shared_fields(buffer, entry, zip64_data > 0);
    zt_buffer_append_le16(buffer, (uint16_t)(zip64_data > 0 ? 4 + zip64_data : 0));
    zt_buffer_append_le16(buffer, 0); /* comment */
    zt_buffer_append_le16(buffer, 0); /* disk */
    zt_buffer_append_le16(buffer, 0); /* attributes */
    zt_buffer_append_le32(buffer, 0);
    zt_buffer_append_le32(buffer, far ? LIMIT32 : (uint32_t)entry->offset);
    zt_buffer_append(buffer, entry->name.bytes, entry->name.length);
    if (zip64_data == 0)
        return;
    zt_buffer_append_le16(buffer, ZIP64_FIELD);
    zt_buffer_append_le16(buffer, zip64_data);
    if (is_large(entry)) {
        zt_buffer_append_le64(buffer, entry->length);
        zt_buffer_append_le64(buffer, entry->length);
    }
    if (far)
        zt_buffer_append_le64(buffer, entry->offset);
}

static void put_end64(struct zt_buffer *buffer, uint64_t count, uint64_t length, uint64_t offset)
{
    zt_buffer_append_le32(buffer, END64_SIGNATURE);
    zt_buffer_append_le64(buffer, 44); /* length of this record after this field */
    zt_buffer_append_le16(buffer, VERSION_ZIP64);
    zt_buffer_append_le16(buffer, VERSION_ZIP64);
    zt_buffer_append_le32(buffer, 0);
    zt_buffer_append_le32(buffer, 0);
    zt_buffer_append_le64(buffer, count);
    zt_buffer_append_le64(buffer, count);
    zt_buffer_append_le64(buffer, length);
    zt_buffer_append_le64(buffer, offset);
    zt_buffer_append_le32(buffer, LOCATOR_SIGNATURE);
    zt_buffer_append_le32(buffer, 0);
    zt_buffer_append_le64(buffer, offset + length);
    zt_buffer_append_le32(buffer, 1);
}

static void put_end(struct zt_buffer *buffer, uint64_t count, uint64_t offset)
{
    uint64_t length = buffer->length;

    if (count >= LIMIT16 || length >= LIMIT32 || offset >= LIMIT32)
        put_end64(buffer, count, length, offset);
    zt_buffer_append_le32(buffer, END_SIGNATURE);
    zt_buffer_append_le16(buffer, 0);
    zt_buffer_append_le16(buffer, 0);
    zt_buffer_append_le16(buffer, (uint16_t)(count < LIMIT16 ? count : LIMIT16));
    zt_buffer_append_le16(buffer, (uint16_t)(count < LIMIT16 ? count : LIMIT16));
    zt_buffer_append_le32(buffer, length < LIMIT32 ? (uint32_t)length : LIMIT32);
    zt_buffer_append_le32(buffer, offset < LIMIT32 ? (uint32_t)offset : LIMIT32);
    zt_buffer_append_le16(buffer, 0);
}

/* --- the whole --- */

/* The value of a CRC-32 digest. */
static uint32_t crc_of(const struct zt_digest *digest)
{
    assert(digest->algorithm == ZT_DIGEST_CRC32);
    return (uint32_t)digest->bytes[0] << 24 | (uint32_t)digest->bytes[1] << 16 |
           (uint32_t)digest->bytes[2] << 8 | digest->bytes[3];
}

static enum zt_status describe_entry(struct zt_planning *planning, const struct zt_object *object,
                                     struct entry *entry)
{
    const struct zt_fingerprint *fingerprint = &planning->fingerprints[object->first_component];

    assert(object->component_count == 1);
    put_name(&entry->name, zt_object_name(object));
    npy_put_head(planning->projection->model, object, &entry->head);
    if (entry->name.failed || entry->head.failed)
        return zt_fail_memory(planning->error, "a file plan");
    entry->length = entry->head.length + fingerprint->length;
    entry->crc = zt_crc32_combine(zt_crc32(0, entry->head.bytes, entry->head.length),
                                  crc_of(&fingerprint->digest), fingerprint->length);
    return ZT_OK;
}

static enum zt_status add_entry(struct zt_planning *planning, const struct zt_object *object,
                                struct zt_buffer *central)
{
    struct entry entry = {.offset = planning->plan->length};
    struct zt_buffer local = {0};
    uint64_t offset = entry.offset;
    enum zt_status status = zt_planning_place(planning, &offset, object->first_component, 1);

    if (status == ZT_OK)
        status = describe_entry(planning, object, &entry);
    if (status != ZT_OK)
        goto out;
    assert(entry.head.length % DATA_ALIGNMENT == 0 && entry.name.length <= LIMIT16);
    put_local_header(&local, &entry);
    zt_buffer_append(&local, entry.head.bytes, entry.head.length);
    put_central_header(central, &entry);
    if (central->failed)
        status = zt_fail_memory(planning->error, "a file plan");
    if (status == ZT_OK)
        status = zt_planning_add(planning, entry.offset, &local);
    if (status == ZT_OK)
        status = zt_planning_component(planning, planning->plan->length, object->first_component);
out:
    zt_buffer_free(&local);
    zt_buffer_free(&entry.name);
    zt_buffer_free(&entry.head);
    return status;
}

enum zt_status npz_plan(struct zt_planning *planning)
{
    const struct zt_model *model = planning->projection->model;
    struct zt_buffer central = {0};
    enum zt_status status = ZT_OK;

    for (uint32_t i = 0; i < model->object_count && status == ZT_OK; i++)
        status = add_entry(planning, &model->objects[i], &central);
    if (status == ZT_OK) {
        put_end(&central, model->object_count, planning->plan->length);
        status = zt_planning_add(planning, planning->plan->length, &central);
    }
    zt_buffer_free(&central);
    return status;
}
