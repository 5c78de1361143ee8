/* PyTorch's ZIP archives (APPNOTE.TXT; torch, caffe2/serialize/inline_container.cc). zip.c checks
 * the rules of ZIP; torch's additional rules are "pt §Archive …". */
#include "formats/pytorch/pytorch_archive.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/index_sort.h"
#include "zt/digest.h"

/* Local headers are before their entries: if entries are short, one read returns several. */
#define GLANCE_BYTES 512
#define WINDOW_BYTES ((size_t)16 << 10)
#define SHORT_BYTES  4096

struct window {
    uint8_t *bytes; /* of ZIP_LOCAL_MAX */
    uint64_t at;
    size_t length;
};

uint64_t pytorch_archive_held_bytes(const struct pytorch_archive *archive)
{
    return (sizeof(*archive->entries) + sizeof(*archive->by_name)) * (uint64_t)archive->entry_count;
}

void pytorch_archive_entry(const struct pytorch_archive *archive, uint32_t index,
                           struct zip_entry *out_entry)
{
    uint64_t position;
    enum zt_status status;

    assert(index < archive->entry_count);
    position = archive->entries[index].record_at;
    status = zip_entry_read(&archive->directory, archive->bytes, &position, out_entry, NULL);
    assert(status == ZT_OK); /* it was read before */
    (void)status;
}

/* --- local headers --- */

/* Makes the window hold length bytes at an entry's local header, which is before the directory. */
static enum zt_status hold(const struct pytorch_archive *archive, const struct zip_entry *entry,
                           size_t length, struct window *window, struct zt_error *error)
{
    const uint64_t at = entry->header_offset;
    const uint64_t left = archive->directory.offset - at;
    size_t wanted = entry->stored_length < SHORT_BYTES ? WINDOW_BYTES : GLANCE_BYTES;
    enum zt_status status;

    if (at >= window->at && at - window->at <= window->length &&
        window->length - (size_t)(at - window->at) >= length)
        return ZT_OK;
    if (length > left)
        return zt_fail(error, ZT_INVALID, "zip §Entry Bounds", entry->header_offset,
                       "the entry does not end before the directory");
    wanted = wanted < length ? length : wanted;
    wanted = wanted < left ? wanted : (size_t)left;
    assert(wanted <= ZIP_LOCAL_MAX);
    window->length = 0;
    status = zt_source_read_at(archive->source, at, window->bytes, wanted, error);
    if (status != ZT_OK)
        return status;
    window->at = at;
    window->length = wanted;
    return ZT_OK;
}

static enum zt_status read_local(const struct pytorch_archive *archive,
                                 const struct zip_entry *entry, struct window *window,
                                 uint64_t *out_data_offset, struct zt_error *error)
{
    size_t length = 0;
    enum zt_status status = hold(archive, entry, ZIP_LOCAL_MIN, window, error);

    if (status == ZT_OK)
        status = zip_local_measure(entry, window->bytes + (entry->header_offset - window->at),
                                   &length, error);
    if (status == ZT_OK)
        status = hold(archive, entry, length, window, error);
    if (status == ZT_OK)
        status = zip_local_check(entry, window->bytes + (entry->header_offset - window->at), error);
    if (status != ZT_OK)
        return status;
    if (entry->stored_length > archive->directory.offset - entry->header_offset - length)
        return zt_fail(error, ZT_INVALID, "zip §Entry Bounds", entry->offset,
                       "the entry does not end before the directory");
    *out_data_offset = entry->header_offset + length;
    return ZT_OK;
}

/* --- entries --- */

static enum zt_status check_entry(const struct zip_entry *entry, struct zt_text root,
                                  struct zt_error *error)
{
    enum zt_status status = zip_entry_check_kind(entry, error);

    if (status != ZT_OK)
        return status;
    if (entry->method == ZIP_STORED && entry->length != entry->stored_length)
        return zt_fail(error, ZT_INVALID, "zip §Entry Size", entry->offset,
                       "a stored entry has %" PRIu64 " bytes and takes %" PRIu64, entry->length,
                       entry->stored_length);
    if (!zt_text_starts_with(entry->name, root))
        return zt_fail(error, ZT_INVALID, "pt §Archive Root", entry->offset,
                       "an entry is outside the archive's one folder");
    return ZT_OK;
}

static enum zt_status take_root(struct pytorch_archive *archive, const struct zip_entry *entry,
                                struct zt_error *error)
{
    const char *slash =
        entry->name.length > 0 ? memchr(entry->name.bytes, '/', entry->name.length) : NULL;

    if (slash == NULL || slash == entry->name.bytes)
        return zt_fail(error, ZT_INVALID, "pt §Archive Root", entry->offset,
                       "an entry is not in a folder");
    archive->root = (struct zt_text){entry->name.bytes, (size_t)(slash - entry->name.bytes) + 1};
    return ZT_OK;
}

static enum zt_status read_entries(struct pytorch_archive *archive, struct window *window,
                                   struct zt_error *error)
{
    uint64_t position = 0;
    struct zip_entry entry;
    enum zt_status status = ZT_OK;

    while (archive->entry_count < archive->directory.entry_count && status == ZT_OK) {
        struct pytorch_entry *kept = &archive->entries[archive->entry_count];

        kept->record_at = (uint32_t)position;
        status = zip_entry_read(&archive->directory, archive->bytes, &position, &entry, error);
        if (status == ZT_OK && archive->root.length == 0)
            status = take_root(archive, &entry, error);
        if (status == ZT_OK)
            status = check_entry(&entry, archive->root, error);
        if (status == ZT_OK)
            status = read_local(archive, &entry, window, &kept->data_offset, error);
        archive->entry_count += status == ZT_OK;
    }
    if (status == ZT_OK && position != archive->directory.length)
        return zt_fail(error, ZT_INVALID, "zip §Directory EntryCount",
                       archive->directory.offset + position,
                       "the directory continues after its %" PRIu64 " entries",
                       archive->directory.entry_count);
    return status;
}

/* --- order by place and by name --- */

static bool lies_after(const void *context, uint32_t a, uint32_t b)
{
    const struct pytorch_archive *archive = context;

    return archive->entries[a].data_offset > archive->entries[b].data_offset;
}

static bool is_named_after(const void *context, uint32_t a, uint32_t b)
{
    struct zip_entry one;
    struct zip_entry other;

    pytorch_archive_entry(context, a, &one);
    pytorch_archive_entry(context, b, &other);
    return zt_text_compare(one.name, other.name) > 0;
}

static enum zt_status check_overlap(const struct pytorch_archive *archive, struct zt_error *error)
{
    const struct zt_index_order order = {lies_after, archive};
    uint32_t *by_place = NULL;
    uint64_t end = 0;
    enum zt_status status = ZT_OK;

    if (zt_index_make(archive->entry_count, &order, &by_place) != ZT_OK)
        return zt_fail_memory(error, "the order of entries");
    for (uint32_t i = 0; i < archive->entry_count && status == ZT_OK; i++) {
        const uint32_t index = by_place[i];
        struct zip_entry entry;

        pytorch_archive_entry(archive, index, &entry);
        if (entry.header_offset < end)
            status = zt_fail(error, ZT_INVALID, "zip §Entry Overlap", entry.header_offset,
                             "the entry begins inside another one");
        end = archive->entries[index].data_offset + entry.stored_length;
    }
    free(by_place);
    return status;
}

static enum zt_status sort_names(struct pytorch_archive *archive, struct zt_error *error)
{
    const struct zt_index_order order = {is_named_after, archive};

    if (zt_index_make(archive->entry_count, &order, &archive->by_name) != ZT_OK)
        return zt_fail_memory(error, "the order of entries");
    for (uint32_t i = 1; i < archive->entry_count; i++) {
        struct zip_entry entry;

        if (is_named_after(archive, archive->by_name[i], archive->by_name[i - 1]))
            continue;
        pytorch_archive_entry(archive, archive->by_name[i], &entry);
        return zt_fail(error, ZT_INVALID, "pt §Archive DuplicateEntry", entry.offset,
                       "two entries of the archive have the same name");
    }
    return ZT_OK;
}

enum zt_status pytorch_archive_open(struct pytorch_archive *archive, struct zt_error *error)
{
    struct window window = {.bytes = malloc(ZIP_LOCAL_MAX)};
    enum zt_status status;

    archive->entries =
        malloc(((size_t)archive->directory.entry_count + 1) * sizeof(*archive->entries));
    if (window.bytes == NULL || archive->entries == NULL)
        status = zt_fail_memory(error, "the entries of an archive");
    else
        status = read_entries(archive, &window, error);
    if (status == ZT_OK)
        status = check_overlap(archive, error);
    if (status == ZT_OK)
        status = sort_names(archive, error);
    free(window.bytes);
    return status;
}

void pytorch_archive_close(struct pytorch_archive *archive)
{
    free(archive->entries);
    free(archive->by_name);
    zt_inflate_stream_free(archive->stream);
}

/* --- finding --- */

/* Compares an entry's name, without the root, with <folder><key>. */
static int compare(const struct pytorch_archive *archive, uint32_t index, struct zt_text folder,
                   struct zt_text key)
{
    struct zip_entry entry;
    struct zt_text name;
    struct zt_text head;
    int order;

    pytorch_archive_entry(archive, index, &entry);
    name = (struct zt_text){entry.name.bytes + archive->root.length,
                            entry.name.length - archive->root.length};
    head = (struct zt_text){name.bytes, name.length < folder.length ? name.length : folder.length};
    order = zt_text_compare(head, folder);
    if (order != 0)
        return order;
    return zt_text_compare(
        (struct zt_text){name.bytes + folder.length, name.length - folder.length}, key);
}

uint32_t pytorch_archive_find(struct pytorch_archive *archive, const char *folder,
                              struct zt_text key)
{
    const struct zt_text prefix = zt_text_from(folder);
    uint32_t low = 0;
    uint32_t high = archive->entry_count;

    /* torch writes storages in the order in which the pickle names them. */
    if (archive->guess < high && compare(archive, archive->guess, prefix, key) == 0)
        return archive->guess++;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const uint32_t index = archive->by_name[middle];
        const int order = compare(archive, index, prefix, key);

        if (order == 0) {
            archive->guess = index + 1;
            return index;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return PYTORCH_NO_ENTRY;
}

/* --- reading --- */

static enum zt_status inflate(struct pytorch_archive *archive, uint32_t index,
                              const struct zip_entry *entry, uint8_t *bytes, struct zt_error *error)
{
    size_t done = 0;
    enum zt_status status = ZT_OK;

    if (archive->stream == NULL)
        status = zt_inflate_stream_new(archive->source, &archive->stream, error);
    if (status == ZT_OK)
        status = zt_inflate_stream_start(archive->stream, archive->entries[index].data_offset,
                                         entry->stored_length, entry->length, false, error);
    do {
        size_t part = 0;

        if (status == ZT_OK)
            status = zt_inflate_stream_read(archive->stream, bytes + done,
                                            (size_t)entry->length - done, &part, error);
        done += part;
    } while (status == ZT_OK && done < entry->length);
    /* Without this entry the file cannot be opened. */
    if (status == ZT_CORRUPT && error != NULL)
        error->status = ZT_INVALID;
    return status == ZT_CORRUPT ? ZT_INVALID : status;
}

static enum zt_status check_size(const struct zip_entry *entry, uint64_t most_bytes,
                                 struct zt_error *error)
{
    if (entry->length > most_bytes)
        return zt_fail(error, ZT_INVALID, "pt §Archive EntrySize", entry->offset,
                       "an entry of %" PRIu64 " bytes; at most %" PRIu64 " are read", entry->length,
                       most_bytes);
    if (entry->method == ZIP_DEFLATED &&
        !zt_inflate_ratio_possible(entry->stored_length, entry->length))
        return zt_fail(error, ZT_INVALID, "zip §Deflate Ratio", entry->offset,
                       "%" PRIu64 " bytes cannot inflate to %" PRIu64, entry->stored_length,
                       entry->length);
    return ZT_OK;
}

enum zt_status pytorch_archive_read(struct pytorch_archive *archive, uint32_t index,
                                    uint64_t most_bytes, uint8_t **out_bytes,
                                    struct zt_error *error)
{
    struct zip_entry entry;
    uint8_t *bytes;
    enum zt_status status;

    pytorch_archive_entry(archive, index, &entry);
    status = check_size(&entry, most_bytes, error);
    if (status != ZT_OK)
        return status;
    bytes = malloc((size_t)entry.length + 1);
    if (bytes == NULL)
        return zt_fail_memory(error, "an entry of an archive");
    if (entry.method == ZIP_DEFLATED)
        status = inflate(archive, index, &entry, bytes, error);
    else
        status = zt_source_read_at(archive->source, archive->entries[index].data_offset, bytes,
                                   (size_t)entry.length, error);
    if (status == ZT_OK && entry.crc32 != 0 &&
        zt_crc32(0, bytes, (size_t)entry.length) != entry.crc32)
        status = zt_fail(error, ZT_INVALID, "pt §Archive Crc", entry.offset,
                         "an entry's CRC-32 differs from the directory's");
    if (status != ZT_OK) {
        free(bytes);
        return status;
    }
    *out_bytes = bytes;
    return ZT_OK;
}
