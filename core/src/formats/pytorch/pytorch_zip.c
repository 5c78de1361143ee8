/* PyTorch since 1.6, and TorchScript: a ZIP archive of one folder, with the pickle in data.pkl and
 * each storage in an entry data/<key>.
 *
 * The central directory and data.pkl are the manifest. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "formats/pytorch/pytorch.h"
#include "formats/pytorch/pytorch_archive.h"

/* What version and byteorder hold takes a few bytes. */
#define SMALL_ENTRY_BYTES 64
#define VERSION_MAX       10

struct reading {
    struct pytorch_reading shared;
    struct pytorch_archive archive;
    uint8_t *pickle_bytes;
    size_t pickle_length;
    bool has_digests;
};

/* --- the small entries --- */

/* Reads an entry of the folder as text; *out_found is false if there is none. */
static enum zt_status read_small(struct reading *reading, const char *name, char *out_text,
                                 bool *out_found, uint64_t *out_at, struct zt_error *error)
{
    const uint32_t index = pytorch_archive_find(&reading->archive, "", zt_text_from(name));
    struct zip_entry entry;
    uint8_t *bytes = NULL;
    enum zt_status status;

    *out_found = index != PYTORCH_NO_ENTRY;
    if (!*out_found)
        return ZT_OK;
    pytorch_archive_entry(&reading->archive, index, &entry);
    *out_at = entry.offset;
    status = pytorch_archive_read(&reading->archive, index, SMALL_ENTRY_BYTES, &bytes, error);
    if (status != ZT_OK)
        return status;
    memcpy(out_text, bytes, (size_t)entry.length);
    out_text[entry.length] = '\0';
    if (memchr(out_text, '\0', (size_t)entry.length) != NULL)
        out_text[0] = '\0';
    free(bytes);
    return ZT_OK;
}

static enum zt_status check_version(struct reading *reading, struct zt_error *error)
{
    char text[SMALL_ENTRY_BYTES + 1] = "";
    bool found;
    uint64_t at = reading->archive.directory.offset;
    uint64_t version;
    size_t length;
    enum zt_status status = read_small(reading, "version", text, &found, &at, error);

    if (status != ZT_OK)
        return status;
    length = strlen(text);
    if (length > 0 && text[length - 1] == '\n')
        length--;
    if (!found || !zt_decimal_read((struct zt_text){text, length}, VERSION_MAX, &version) ||
        version < 1)
        return zt_fail(error, ZT_INVALID, "pt §Archive Version", at,
                       "the archive has no version from 1 to 10");
    return ZT_OK;
}

static enum zt_status read_byteorder(struct reading *reading, struct zt_error *error)
{
    char text[SMALL_ENTRY_BYTES + 1] = "";
    bool found;
    uint64_t at = 0;
    enum zt_status status = read_small(reading, "byteorder", text, &found, &at, error);

    if (status != ZT_OK || !found)
        return status;
    reading->shared.is_big_endian = strcmp(text, "big") == 0;
    if (!reading->shared.is_big_endian && strcmp(text, "little") != 0)
        return zt_fail(error, ZT_INVALID, "pt §Archive Byteorder", at,
                       "the byte order is neither little nor big");
    return ZT_OK;
}

/* --- the pickle --- */

static enum zt_status read_pickle(struct reading *reading, struct zt_error *error)
{
    struct pytorch_archive *archive = &reading->archive;
    const uint32_t index = pytorch_archive_find(archive, "", zt_text_from("data.pkl"));
    const uint32_t constants = pytorch_archive_find(archive, "", zt_text_from("constants.pkl"));
    struct zip_entry entry;
    enum zt_status status;

    if (index == PYTORCH_NO_ENTRY)
        return zt_fail(error, ZT_INVALID, "pt §Archive Root", archive->directory.offset,
                       "data.pkl is not in the archive's one folder");
    status =
        pytorch_archive_read(archive, index, PICKLE_BYTES_MAX - 1, &reading->pickle_bytes, error);
    if (status != ZT_OK)
        return status;
    pytorch_archive_entry(archive, index, &entry);
    reading->pickle_length = (size_t)entry.length;
    reading->has_digests = entry.crc32 != 0;
    pickle_init(&reading->shared.pickle, reading->pickle_bytes, reading->pickle_length,
                archive->entries[index].data_offset);
    reading->shared.pickle.is_inflated = entry.method == ZIP_DEFLATED;
    reading->shared.pickle.is_torchscript = constants != PYTORCH_NO_ENTRY;
    return ZT_OK;
}

static enum zt_status run_pickle(struct reading *reading, pickle_value *out_root,
                                 struct zt_error *error)
{
    struct pickle *pickle = &reading->shared.pickle;
    enum zt_status status = pickle_run(pickle, out_root, error);

    if (status == ZT_OK && pickle->position != pickle->length)
        status = pickle_fail(pickle, pickle->position, "pt §Pickle Trailing", error,
                             "bytes follow the end of the pickle");
    pickle_drop_stack(pickle);
    return status;
}

/* --- storages --- */

static void find_blob(const void *storages, uint32_t place, struct pytorch_blob *out_blob)
{
    const struct reading *reading = storages;
    struct zip_entry entry;

    pytorch_archive_entry(&reading->archive, place, &entry);
    *out_blob = (struct pytorch_blob){.offset = reading->archive.entries[place].data_offset,
                                      .stored_length = entry.stored_length,
                                      .length = entry.length,
                                      .is_deflated = entry.method == ZIP_DEFLATED,
                                      .has_digest = reading->has_digests,
                                      .crc32 = entry.crc32};
}

static enum zt_status check_storage(struct reading *reading, const struct pickle_storage *storage,
                                    uint32_t *out_place, struct zt_error *error)
{
    const struct pickle *pickle = &reading->shared.pickle;
    const uint32_t index = pytorch_archive_find(&reading->archive, "data/", storage->key);
    struct zip_entry entry;

    if (index == PYTORCH_NO_ENTRY)
        return pickle_fail(pickle, storage->position, "pt §Storage Missing", error,
                           "the archive has no entry for a storage");
    pytorch_archive_entry(&reading->archive, index, &entry);
    if (entry.length / storage->type->width_bytes != storage->count)
        return pickle_fail(pickle, storage->position, "pt §Storage Size", error,
                           "a storage of %" PRIu64 " elements of %u bytes has %" PRIu64 " bytes",
                           storage->count, storage->type->width_bytes, entry.length);
    if (entry.method == ZIP_DEFLATED &&
        !zt_inflate_ratio_possible(entry.stored_length, entry.length))
        return zt_fail(error, ZT_INVALID, "zip §Deflate Ratio", entry.offset,
                       "%" PRIu64 " bytes cannot inflate to %" PRIu64, entry.stored_length,
                       entry.length);
    *out_place = index;
    return ZT_OK;
}

static enum zt_status find_storages(struct reading *reading, struct zt_error *error)
{
    struct pickle *pickle = &reading->shared.pickle;
    enum zt_status status = ZT_OK;

    for (uint32_t at = pickle_storage_next(pickle, 0); at != 0 && status == ZT_OK;
         at = pickle_storage_next(pickle, at)) {
        struct pickle_storage storage;
        uint32_t place = 0;

        pickle_storage_read(pickle, at, &storage);
        status = check_storage(reading, &storage, &place, error);
        if (status == ZT_OK)
            pickle_storage_place(pickle, at, place);
    }
    return status;
}

/* --- the whole --- */

static enum zt_status locate(void *state, struct zt_source *source,
                             struct zt_manifest_place *out_place, struct zt_error *error)
{
    struct reading *reading = state;
    enum zt_status status = zip_directory_find(source, &reading->archive.directory, error);

    if (status == ZT_OK)
        *out_place = (struct zt_manifest_place){.offset = reading->archive.directory.offset,
                                                .length = reading->archive.directory.length};
    return status;
}

static enum zt_status read_tensors(struct reading *reading, struct zt_error *error)
{
    struct pytorch_reading *shared = &reading->shared;
    pickle_value root = 0;
    enum zt_status status = run_pickle(reading, &root, error);

    if (status == ZT_OK)
        status = find_storages(reading, error);
    if (status != ZT_OK)
        return status;
    pytorch_set_budget(shared, reading->archive.directory.length + reading->pickle_length,
                       pytorch_archive_held_bytes(&reading->archive));
    return pytorch_tree_read(shared, root, error);
}

/* The identity of a manifest in two pieces. */
static void hash_manifest(const struct reading *reading, struct zt_model *model)
{
    const uint64_t hashes[2] = {model->manifest_hash,
                                zt_xxh3(reading->pickle_bytes, reading->pickle_length)};

    model->manifest_hash = zt_xxh3(hashes, sizeof(hashes));
    model->manifest_offset = 0;
    model->manifest_length += reading->pickle_length;
    if (model->manifest_length > model->file_size) /* the pickle is deflated */
        model->manifest_length = model->file_size;
}

static enum zt_status read_archive(void *state, struct zt_builder *builder, struct zt_error *error)
{
    struct reading *reading = state;
    struct pytorch_archive *archive = &reading->archive;
    enum zt_status status;

    reading->shared.builder = builder;
    reading->shared.find = find_blob;
    reading->shared.storages = reading;
    archive->bytes = builder->model->storage->manifest;
    status = pytorch_archive_open(archive, error);
    if (status == ZT_OK)
        status = check_version(reading, error);
    if (status == ZT_OK)
        status = read_byteorder(reading, error);
    if (status == ZT_OK)
        status = read_pickle(reading, error);
    if (status == ZT_OK)
        status = read_tensors(reading, error);
    if (status != ZT_OK)
        return status;
    hash_manifest(reading, builder->model);
    return ZT_OK;
}

static const struct zt_reader reader = {
    .format = ZT_FORMAT_PYTORCH,
    .name = "pytorch",
    .duplicate_rule = "pt §Names DuplicateName",
    .locate = locate,
    .read = read_archive,
    .check = pytorch_drop_manifest,
};

enum zt_status pytorch_zip_open(struct zt_source *source, struct zt_model **out_model,
                                struct zt_error *error)
{
    struct reading reading = {.archive = {.source = source}};
    enum zt_status status = zt_reader_open(&reader, &reading, source, out_model, error);

    pickle_free(&reading.shared.pickle);
    pytorch_archive_close(&reading.archive);
    free(reading.pickle_bytes);
    return status;
}
