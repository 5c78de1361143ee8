#include "mag_file.h"

#include <string.h>

#include "zt/digest.h"

static void mag_put(struct bytes *bytes, uint64_t value, unsigned width)
{
    uint8_t word[8];

    bytes_put_le(word, value, width);
    bytes_append(bytes, word, width);
}

static void mag_put_key(struct bytes *bytes, const char *key)
{
    mag_put(bytes, strlen(key), 4);
    bytes_append(bytes, key, strlen(key));
}

bool mag_layout_is_snapshot(enum mag_layout layout)
{
    return layout == MAG_M3 || layout == MAG_M4;
}

void mag_set_up(struct mag_file *file, enum mag_layout layout)
{
    static const struct mag_record records[2] = {
        {"a", {2, 3, 1, 1, 1, 1}, 0, 2, 0, 6, 24, MAG_DATA_AT},
        {"b", {4, 1, 1, 1, 1, 1}, 2, 1, 0, 4, 4, MAG_DATA_AT + 64}};

    memset(file, 0, sizeof(*file));
    file->layout = layout;
    memcpy(file->records, records, sizeof(records));
    file->metadata_key = "lr";
    file->metadata_aux = 2;
    if (mag_layout_is_snapshot(layout)) {
        file->records[0].offset = 0;
        file->records[1].offset = layout == MAG_M3 ? 24 : 32;
        file->records[1].dtype = layout == MAG_M3 ? 3 : 4;
    }
}

static void append_record(struct mag_file *file, const struct mag_record *record)
{
    struct bytes *bytes = &file->bytes;

    if (file->layout == MAG_M1) {
        mag_put_key(bytes, record->key);
        for (unsigned i = 0; i < 6; i++)
            mag_put(bytes, record->shape[i], 8);
        mag_put(bytes, record->dtype, 1);
        mag_put(bytes, record->length, 8);
        mag_put(bytes, record->offset, 8);
        mag_put(bytes, record->aux, 4);
        return;
    }
    mag_put(bytes,
            file->layout == MAG_M2 ? record->dtype + (record->rank << 8) + record->aux
                                   : record->rank + (record->dtype << 8) + record->aux,
            4);
    if (mag_layout_is_snapshot(file->layout))
        mag_put(bytes, strcmp(record->key, "b") == 0, 4);
    mag_put(bytes, record->elements, 8);
    mag_put(bytes, record->offset, 8);
    for (unsigned i = 0; i < record->rank && i < 6; i++)
        mag_put(bytes, record->shape[i], 8);
    if (file->layout == MAG_M2)
        mag_put_key(bytes, record->key);
}

static void append_metadata(struct mag_file *file)
{
    double number = 0.5;
    uint64_t payload;

    memcpy(&payload, &number, sizeof(payload));
    file->metadata_at = file->bytes.length;
    mag_put(&file->bytes, file->metadata_aux, 4);
    mag_put(&file->bytes, payload, 8);
    mag_put_key(&file->bytes, file->metadata_key);
    mag_put(&file->bytes, 1, 4);
    mag_put(&file->bytes, (uint64_t)-7, 8);
    mag_put_key(&file->bytes, "epoch");
}

void mag_seal(struct mag_file *file)
{
    size_t at = mag_layout_is_snapshot(file->layout) ? 16 : 8;
    size_t from = mag_layout_is_snapshot(file->layout) ? 20 : 12;

    bytes_put_le(file->bytes.at + at, zt_crc32c(0, file->bytes.at + from, file->end - from), 4);
}

static void pad_to_16(struct bytes *bytes)
{
    while (bytes->length % 16 != 0)
        mag_put(bytes, 0, 1);
}

static void append_data(struct mag_file *file)
{
    static const uint8_t data[28] = {1, 2, 3, [24] = 1, 0, 0, 1};

    if (file->layout == MAG_M4) {
        bytes_append(&file->bytes, "BUF!", 4);
        pad_to_16(&file->bytes);
        bytes_append(&file->bytes, data, 24);
        pad_to_16(&file->bytes);
        bytes_append(&file->bytes, data + 24, 4);
        return;
    }
    if (file->layout == MAG_M3) {
        bytes_append(&file->bytes, "BUF!", 4);
        bytes_append(&file->bytes, data, sizeof(data));
        return;
    }
    while (file->bytes.length < MAG_DATA_AT)
        bytes_append(&file->bytes, "\xFF", 1);
    bytes_append(&file->bytes, data, 24);
    while (file->bytes.length < MAG_DATA_AT + 64)
        bytes_append(&file->bytes, "\xFF", 1);
    bytes_append(&file->bytes, data + 24, 4);
}

void mag_make(struct mag_file *file)
{
    struct bytes *bytes = &file->bytes;

    bytes_free(bytes);
    bytes_append(bytes, "MAG!", 4);
    mag_put(bytes, file->layout == MAG_M4 ? 200 : file->layout == MAG_M3 ? 100 : 1, 4);
    if (mag_layout_is_snapshot(file->layout)) {
        mag_put(bytes, 1700000000, 8);
        mag_put(bytes, 0, 8);
        mag_put(bytes, 0, 4);
        mag_put(bytes, 2 + file->counts[0], 4);
        bytes_append(bytes, "SRP!", 4);
        mag_put(bytes, 2, 4);
        mag_put(bytes, 0, 4);
        mag_put(bytes, 1, 4);
        mag_put(bytes, 2, 4);
        bytes_append(bytes, "abMDT!DSC!", 10);
    } else {
        mag_put(bytes, 0, 4);
        mag_put(bytes, 2 + file->counts[0], 4);
        mag_put(bytes, 2 + file->counts[1], 4);
        mag_put(bytes, 0, 4);
        append_metadata(file);
    }
    for (unsigned i = 0; i < 2; i++) {
        file->record_at[i] = bytes->length;
        append_record(file, &file->records[i]);
    }
    file->end = bytes->length;
    append_data(file);
    mag_seal(file);
}

void mag_assert_refused(struct mag_file *file, const char *rule, uint64_t offset)
{
    mag_make(file);
    bytes_assert_refused(&file->bytes, rule, offset);
    bytes_free(&file->bytes);
}
