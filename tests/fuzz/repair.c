/* Repairing the hashes and positions of a file that the fuzzer has changed. */
#include "fuzz.h"

#include <string.h>

#include "base/little_endian.h"
#include "formats/mag/mag.h"
#include "zt/digest.h"

/* --- zTensor 2: the manifest reaches to the footer, which holds its hash --- */

#define ZT2_FOOTER 40

bool fuzz_repair_zt2(uint8_t *bytes, size_t length)
{
    uint8_t *footer;
    uint64_t offset;
    uint64_t end;

    if (length < ZT2_FOOTER)
        return false;
    footer = bytes + length - ZT2_FOOTER;
    offset = zt_load_le64(footer);
    end = length - ZT2_FOOTER;

    if (offset > end)
        return false;
    zt_store_le64(footer + 8, end - offset);
    zt_store_le64(footer + 16, zt_xxh3(bytes + offset, (size_t)(end - offset)));
    return true;
}

/* --- .mag: the records' checksum --- */

#define M3_CHECKSUM_AT  16
#define M3_COVERED_FROM 20

static bool repair_snapshot(uint8_t *bytes, size_t length)
{
    for (size_t at = length - 4; at > MAG_SNAPSHOT_HEAD_BYTES; at--) {
        if (memcmp(bytes + at, "BUF!", 4) == 0) {
            zt_store_le32(bytes + M3_CHECKSUM_AT,
                          zt_crc32c(0, bytes + M3_COVERED_FROM, at - M3_COVERED_FROM));
            return true;
        }
    }
    return false;
}

static bool repair_records(uint8_t *bytes, size_t length, const struct mag_layout *layout)
{
    struct mag_header header;
    struct zt_source *source;
    uint64_t end;
    bool is_whole;

    FUZZ_ASSERT(zt_source_from_memory(bytes, length, &source, NULL) == ZT_OK);
    is_whole = mag_header_read(source, &header, NULL) == ZT_OK &&
               mag_records_measure(layout, &header, source, &end, NULL) == ZT_OK;
    zt_source_close(source);
    if (is_whole)
        zt_store_le32(bytes + MAG_CHECKSUM_AT,
                      zt_crc32c(0, bytes + MAG_CHECKSUM_AT + 4, (size_t)end - MAG_CHECKSUM_AT - 4));
    return is_whole;
}

bool fuzz_repair_mag(uint8_t *bytes, size_t length)
{
    if (length < MAG_SNAPSHOT_HEAD_BYTES + 4)
        return false;
    if (zt_load_le32(bytes + 4) == MAG_VERSION_100 || zt_load_le32(bytes + 4) == MAG_VERSION_200)
        return repair_snapshot(bytes, length);
    return repair_records(bytes, length, &mag_m1) || repair_records(bytes, length, &mag_m2);
}

/* --- ZIP: the positions of the directory and the entries --- */

#define END_BYTES    22
#define RECORD_BYTES 46

static size_t find(const uint8_t *bytes, size_t from, size_t length, const char *signature)
{
    for (size_t at = from; at + 4 <= length; at++)
        if (memcmp(bytes + at, signature, 4) == 0)
            return at;
    return length;
}

/* The n-th record is that of the n-th local header. */
static void repair_records_of_zip(uint8_t *bytes, size_t directory, size_t length)
{
    size_t local = find(bytes, 0, directory, "PK\3\4");
    size_t record = directory;

    while (record + RECORD_BYTES <= length && local < directory) {
        zt_store_le32(bytes + record + 42, (uint32_t)local);
        local = find(bytes, local + 4, directory, "PK\3\4");
        record = find(bytes, record + 4, length, "PK\1\2");
    }
}

bool fuzz_repair_zip(uint8_t *bytes, size_t length)
{
    size_t directory = find(bytes, 0, length, "PK\1\2");
    size_t end = find(bytes, directory, length, "PK\5\6");

    if (end + END_BYTES > length)
        return false;
    zt_store_le32(bytes + end + 12, (uint32_t)(end - directory));
    zt_store_le32(bytes + end + 16, (uint32_t)directory);
    repair_records_of_zip(bytes, directory, end);
    return true;
}
