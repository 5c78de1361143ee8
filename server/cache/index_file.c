#include "cache/index_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/little_endian.h"
#include "disk/disk_file.h"
#include "disk/whole_file.h"
#include "zt/digest.h"

#define HEADER_BYTES 48u
#define RECORD_BYTES 16u
#define REMOVAL      ((uint32_t)1 << 31)
/* A longer index is garbage, because indices are rewritten before they grow so long. */
#define INDEX_RECORDS_MAX(size) (8 * ((size) / CACHE_BLOCK_BYTES) + 65536)
/* Records per read. */
#define PAGE_RECORDS 4096u

static const char magic[8] = "ztblocks";

static void make_header(const uint8_t key[CACHE_KEY_BYTES], uint64_t size_bytes,
                        uint8_t out_header[HEADER_BYTES])
{
    memcpy(out_header, magic, 8);
    memcpy(out_header + 8, key, CACHE_KEY_BYTES);
    zt_store_le64(out_header + 24, size_bytes);
    zt_store_le64(out_header + 32, CACHE_BLOCK_BYTES);
    zt_store_le64(out_header + 40, zt_xxh3(out_header, 40));
}

static uint32_t record_check(const uint8_t key[CACHE_KEY_BYTES], const uint8_t *record)
{
    uint8_t checked[CACHE_KEY_BYTES + RECORD_BYTES - 4];

    memcpy(checked, key, CACHE_KEY_BYTES);
    memcpy(checked + CACHE_KEY_BYTES, record, RECORD_BYTES - 4);
    return (uint32_t)zt_xxh3(checked, sizeof(checked));
}

static void make_record(const uint8_t key[CACHE_KEY_BYTES], uint32_t number, uint64_t checksum,
                        uint8_t *out_record)
{
    assert(number != UINT32_MAX);
    zt_store_le64(out_record, checksum);
    zt_store_le32(out_record + 8, number);
    zt_store_le32(out_record + 12, record_check(key, out_record));
}

/* --- reading --- */

static void read_record(const uint8_t key[CACHE_KEY_BYTES], const uint8_t *record,
                        const struct index_reader *reader)
{
    uint32_t number = zt_load_le32(record + 8);

    if (zt_load_le32(record + 12) != record_check(key, record))
        return;
    if ((number & REMOVAL) != 0)
        reader->removed(reader->context, number & ~REMOVAL);
    else
        reader->block(reader->context, number, zt_load_le64(record));
}

static bool read_records(int index, const uint8_t key[CACHE_KEY_BYTES], uint64_t count,
                         const struct index_reader *reader)
{
    uint8_t *page = calloc(PAGE_RECORDS, RECORD_BYTES);
    bool is_read = page != NULL;

    for (uint64_t at = 0; is_read && at < count; at += PAGE_RECORDS) {
        size_t records = (size_t)(count - at < PAGE_RECORDS ? count - at : PAGE_RECORDS);

        is_read = disk_read(index, page, records * RECORD_BYTES, HEADER_BYTES + at * RECORD_BYTES);
        for (size_t i = 0; is_read && i < records; i++)
            read_record(key, page + i * RECORD_BYTES, reader);
    }
    free(page);
    return is_read;
}

bool index_load(const struct folder *folder, const uint8_t key[CACHE_KEY_BYTES],
                uint64_t size_bytes, const struct index_reader *reader, uint64_t *out_records)
{
    uint8_t expected[HEADER_BYTES];
    uint8_t header[HEADER_BYTES];
    struct stat facts;
    bool is_read = false;
    int index = folder_file(folder, key, FOLDER_INDEX, O_RDWR | O_NONBLOCK);

    if (index < 0)
        return false;
    make_header(key, size_bytes, expected);
    if (fstat(index, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size >= HEADER_BYTES &&
        disk_read(index, header, HEADER_BYTES, 0) && memcmp(header, expected, HEADER_BYTES) == 0) {
        uint64_t torn = ((uint64_t)facts.st_size - HEADER_BYTES) % RECORD_BYTES;

        *out_records = ((uint64_t)facts.st_size - HEADER_BYTES) / RECORD_BYTES;
        /* Otherwise what is appended would not stand where records are looked for. */
        is_read = torn == 0 || ftruncate(index, facts.st_size - (off_t)torn) == 0;
        is_read = is_read && *out_records <= INDEX_RECORDS_MAX(size_bytes) &&
                  read_records(index, key, *out_records, reader);
    }
    close(index);
    return is_read;
}

/* --- writing --- */

bool index_write(const struct folder *folder, const uint8_t key[CACHE_KEY_BYTES],
                 uint64_t size_bytes, const struct index_block *blocks, size_t count)
{
    const size_t length = HEADER_BYTES + count * RECORD_BYTES;
    char name[FOLDER_NAME_SIZE];
    uint8_t *bytes = malloc(length);
    bool is_written;

    assert(count == 0 || blocks != NULL);
    if (bytes == NULL)
        return false;
    make_header(key, size_bytes, bytes);
    for (size_t i = 0; i < count; i++)
        make_record(key, blocks[i].block, blocks[i].checksum,
                    bytes + HEADER_BYTES + i * RECORD_BYTES);
    folder_name(key, FOLDER_INDEX, name);
    is_written = whole_file_replace(atomic_load(&folder->descriptor), name, bytes, length);
    free(bytes);
    return is_written;
}

/* Part of a record would shift all that follow: they would not be found again. */
static void append(const struct folder *folder, const uint8_t key[CACHE_KEY_BYTES],
                   const uint8_t *records, size_t length)
{
    char name[FOLDER_NAME_SIZE];

    assert(length > 0 && length % RECORD_BYTES == 0);
    folder_name(key, FOLDER_INDEX, name);
    (void)whole_file_append(atomic_load(&folder->descriptor), name, WHOLE_FILE_ANY_LENGTH, records,
                            length);
}

void index_append(const struct folder *folder, const uint8_t key[CACHE_KEY_BYTES],
                  const struct index_block *blocks, size_t count)
{
    uint8_t records[(CACHE_RUN_BYTES / CACHE_BLOCK_BYTES) * RECORD_BYTES];

    assert(count * RECORD_BYTES <= sizeof(records));
    for (size_t i = 0; i < count; i++)
        make_record(key, blocks[i].block, blocks[i].checksum, records + i * RECORD_BYTES);
    append(folder, key, records, count * RECORD_BYTES);
}

void index_append_removal(const struct folder *folder, const uint8_t key[CACHE_KEY_BYTES],
                          uint32_t extent)
{
    uint8_t record[RECORD_BYTES];

    assert((extent & REMOVAL) == 0);
    make_record(key, extent | REMOVAL, 0, record);
    append(folder, key, record, RECORD_BYTES);
}
