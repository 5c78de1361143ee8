/* Archives of NumPy arrays (.npz): one object for each entry that begins like an array, under any
 * name. Entries that are not arrays, and arrays of other types than numbers, are listed in the
 * attribute "unread".
 *
 * The central directory is the manifest. Only the headers of an entry are read; a deflated entry is
 * inflated only up to the end of the array's header. Names are labels, never paths. */
#include "formats/formats.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coding/inflate_stream.h"
#include "formats/zip.h"
#include "model/extents.h"
#include "model/model_build.h"
#include "numpy/npy_header.h"
#include "numpy/npz_name.h"
#include "numpy/unread_members.h"
#include "zt/utf8.h"

/* Number of entries whose headers are fetched together. */
#define ENTRIES_AHEAD 16
/* Size of the first read of an entry: enough for the ZIP header and NumPy's header. */
#define GLANCE_BYTES 512
#define SCRATCH_SIZE (ZIP_LOCAL_MAX + NPY_HEADER_MAX)
/* "crc32:" and eight digits. */
#define DIGEST_LENGTH 14

struct reading {
    struct zt_source *source;
    struct zip_directory directory;
    struct zt_builder *builder;
    struct zt_inflate_stream *stream; /* made for the first deflated entry */
    /* For each component: bytes from the entry's local header to the component's first byte. */
    uint32_t *lead_lengths;
    bool is_pytorch; /* the archive is one of PyTorch's */
    struct unread_members unread;
    struct zt_error *refusal; /* of the first array that is not read */
    /* The current entry from its local header on, as far as it has been read. */
    uint8_t *scratch;
    size_t scratch_length;
};

/* An entry and the contents of its headers. */
struct array {
    struct zip_entry entry;
    uint64_t data_offset; /* absolute: after the local header */
    struct npy_header header;
};

/* --- an entry's bytes --- */

/* Reads more of the entry until the scratch holds length bytes. */
static enum zt_status read_ahead(struct reading *reading, const struct zip_entry *entry,
                                 size_t length, struct zt_error *error)
{
    size_t held = reading->scratch_length;
    uint64_t limit = reading->directory.offset - entry->header_offset;
    enum zt_status status;

    assert(entry->header_offset <= reading->directory.offset);
    assert(length <= SCRATCH_SIZE);
    if (held >= length)
        return ZT_OK;
    if (length > limit)
        return zt_fail(error, ZT_INVALID, "zip §Entry Bounds", entry->header_offset,
                       "the entry does not end before the directory");
    if (held == 0 && length < GLANCE_BYTES)
        length = limit < GLANCE_BYTES ? (size_t)limit : GLANCE_BYTES;
    status = zt_source_read_at(reading->source, entry->header_offset + held,
                               reading->scratch + held, length - held, error);
    if (status == ZT_OK)
        reading->scratch_length = length;
    return status;
}

static enum zt_status read_local_header(struct reading *reading, struct array *array,
                                        struct zt_error *error)
{
    const struct zip_entry *entry = &array->entry;
    size_t length = 0;
    enum zt_status status;

    reading->scratch_length = 0;
    status = read_ahead(reading, entry, ZIP_LOCAL_MIN, error);
    if (status == ZT_OK)
        status = zip_local_measure(entry, reading->scratch, &length, error);
    if (status == ZT_OK)
        status = read_ahead(reading, entry, length, error);
    if (status == ZT_OK)
        status = zip_local_check(entry, reading->scratch, error);
    if (status != ZT_OK)
        return status;
    array->data_offset = entry->header_offset + length;
    if (entry->stored_length > reading->directory.offset - array->data_offset)
        return zt_fail(error, ZT_INVALID, "zip §Entry Bounds", entry->offset,
                       "the entry does not end before the directory");
    return ZT_OK;
}

/* --- the array's header --- */

static enum zt_status read_stored_header(struct reading *reading, struct array *array,
                                         struct zt_error *error)
{
    const struct zip_entry *entry = &array->entry;
    struct npy_place place = {.offset = array->data_offset};
    size_t before = (size_t)(array->data_offset - entry->header_offset);
    size_t first = entry->length < NPY_PREAMBLE_MAX ? (size_t)entry->length : NPY_PREAMBLE_MAX;
    uint32_t length = 0;
    enum zt_status status;

    if (entry->length != entry->stored_length)
        return zt_fail(error, ZT_INVALID, "zip §Entry Size", entry->offset,
                       "a stored entry has %" PRIu64 " bytes and takes %" PRIu64, entry->length,
                       entry->stored_length);
    status = read_ahead(reading, entry, before + first, error);
    if (status == ZT_OK)
        status =
            npy_header_measure(reading->scratch + before, entry->length, &place, &length, error);
    if (status == ZT_OK)
        status = read_ahead(reading, entry, before + length, error);
    if (status == ZT_OK)
        status = npy_header_read(reading->scratch + before, length, &place, &array->header, error);
    return status;
}

/* Inflates until the scratch holds length bytes of the stream; it already holds `from` bytes. */
static enum zt_status inflate_to(struct reading *reading, size_t from, size_t length,
                                 struct zt_error *error)
{
    while (from < length) {
        size_t part = 0;
        enum zt_status status = zt_inflate_stream_read(reading->stream, reading->scratch + from,
                                                       length - from, &part, error);

        if (status != ZT_OK)
            return status;
        assert(part <= length - from);
        from += part;
    }
    return ZT_OK;
}

static enum zt_status read_inflated_header(struct reading *reading, struct array *array,
                                           struct zt_error *error)
{
    const struct zip_entry *entry = &array->entry;
    struct npy_place place = {.offset = array->data_offset, .is_inflated = true};
    size_t first = entry->length < NPY_PREAMBLE_MAX ? (size_t)entry->length : NPY_PREAMBLE_MAX;
    uint32_t length = 0;
    enum zt_status status = ZT_OK;

    if (reading->stream == NULL)
        status = zt_inflate_stream_new(reading->source, &reading->stream, error);
    if (status == ZT_OK)
        status = zt_inflate_stream_start(reading->stream, array->data_offset, entry->stored_length,
                                         entry->length, false, error);
    if (status == ZT_OK)
        status = inflate_to(reading, 0, first, error);
    if (status == ZT_OK)
        status = npy_header_measure(reading->scratch, entry->length, &place, &length, error);
    if (status == ZT_OK)
        status = inflate_to(reading, first, length, error);
    if (status == ZT_OK)
        status = npy_header_read(reading->scratch, length, &place, &array->header, error);
    /* A stream that is broken within the header makes the file invalid. */
    if (status == ZT_CORRUPT && error != NULL)
        error->status = ZT_INVALID;
    return status == ZT_CORRUPT ? ZT_INVALID : status;
}

static enum zt_status read_array(struct reading *reading, struct array *array,
                                 struct zt_error *error)
{
    const struct zip_entry *entry = &array->entry;
    enum zt_status status = zip_entry_check_kind(entry, error);

    if (status == ZT_OK)
        status = read_local_header(reading, array, error);
    if (status == ZT_OK)
        status = entry->method == ZIP_STORED ? read_stored_header(reading, array, error)
                                             : read_inflated_header(reading, array, error);
    if (status != ZT_OK)
        return status;
    if (array->header.data_bytes != entry->length - array->header.length_bytes)
        return zt_fail(error, ZT_INVALID, "npz §Entry Size", entry->offset,
                       "%" PRIu64 " bytes follow the array's header, but the array takes %" PRIu64,
                       entry->length - array->header.length_bytes, array->header.data_bytes);
    return ZT_OK;
}

/* --- into the model --- */

static enum zt_status set_digest(struct reading *reading, uint32_t crc32,
                                 struct zt_component *component, struct zt_error *error)
{
    char text[DIGEST_LENGTH + 1];
    void *held;
    enum zt_status status =
        zt_arena_take(&reading->builder->model->storage->arena, DIGEST_LENGTH, &held, error);

    if (status != ZT_OK)
        return status;
    snprintf(text, sizeof(text), "crc32:%08" PRIx32, crc32);
    memcpy(held, text, DIGEST_LENGTH);
    component->digest = held;
    component->digest_length = DIGEST_LENGTH;
    return ZT_OK;
}

/* The component's range is at first the whole entry, so that overlapping headers are found too;
 * drop_leads() shrinks it later. */
static enum zt_status add_array(struct reading *reading, const struct array *array,
                                struct zt_text name, struct zt_error *error)
{
    const struct zip_entry *entry = &array->entry;
    struct zt_builder *builder = reading->builder;
    uint64_t lead = array->data_offset - entry->header_offset;
    struct zt_component *component;
    enum zt_status status =
        npy_array_add(&array->header, name, entry->header_offset, builder, error);

    if (status != ZT_OK)
        return status;
    component = zt_last_component(builder);
    component->length = lead + entry->stored_length;
    if (entry->method == ZIP_DEFLATED) {
        component->encoding = ZT_ENCODING_DEFLATE;
        component->encoding_name = "deflate";
        component->encoding_length = 7;
    } else {
        lead += array->header.length_bytes;
    }
    assert(builder->model->component_count <= reading->directory.entry_count);
    assert(lead <= component->length);
    reading->lead_lengths[builder->model->component_count - 1] = (uint32_t)lead;
    return set_digest(reading, entry->crc32, component, error);
}

static bool is_no_array(const struct zt_error *failure)
{
    return failure->rule != NULL && strcmp(failure->rule, NPY_RULE_MAGIC) == 0;
}

/* Whether the failure means that the entry is not a supported array, and not that the archive is
 * broken. An entry without the name of an array may be anything. */
static bool is_only_unread(const struct zip_entry *entry, const struct zt_error *failure)
{
    if (failure->status == ZT_UNSUPPORTED)
        return true;
    if (failure->status != ZT_INVALID)
        return false;
    return !npz_name_promises_array(entry->name) || is_no_array(failure);
}

/* Lists an entry that is not read, and remembers the first array among them. */
static enum zt_status add_unread(struct reading *reading, const struct zip_entry *entry,
                                 const struct zt_error *failure, struct zt_error *error)
{
    const char *reason = failure->message;

    if (is_no_array(failure))
        reason = entry->length == 0 ? "it is empty" : "it is not a NumPy array";
    if (reading->refusal->status == ZT_OK && failure->status == ZT_UNSUPPORTED)
        *reading->refusal = *failure;
    return unread_members_add(&reading->unread, entry->name, reason, error);
}

static enum zt_status read_named_array(struct reading *reading, struct array *array,
                                       struct zt_text *out_name, struct zt_error *error)
{
    enum zt_status status = read_array(reading, array, error);

    if (status == ZT_OK)
        status = npz_name_read(array->entry.name, &reading->builder->model->storage->arena,
                               out_name, error);
    if (status != ZT_OK || zt_utf8_valid(out_name->bytes, out_name->length))
        return status;
    return zt_fail(error, ZT_UNSUPPORTED, NULL, array->entry.offset,
                   "the name of the array is not UTF-8");
}

/* Names the array at fault, if its name can be shown. */
static void name_failure(const struct zip_entry *entry, struct zt_error *failure)
{
    struct zt_text name = entry->name;

    if (npz_name_promises_array(name))
        name.length -= strlen(NPZ_SUFFIX);
    if (zt_utf8_valid(name.bytes, name.length))
        zt_error_at(failure, name, (struct zt_text){NULL, 0});
}

static enum zt_status take_entry(struct reading *reading, const struct zip_entry *entry,
                                 struct zt_error *error)
{
    struct array array = {.entry = *entry};
    struct zt_text name = {NULL, 0};
    struct zt_error failure;
    enum zt_status status = read_named_array(reading, &array, &name, &failure);

    if (status == ZT_OK)
        status = add_array(reading, &array, name, &failure);
    if (status == ZT_OK)
        return ZT_OK;
    name_failure(entry, &failure);
    if (is_only_unread(entry, &failure))
        return add_unread(reading, entry, &failure, error);
    if (error != NULL)
        *error = failure;
    return status;
}

/* A folder is an entry without content. */
static bool is_folder(const struct zip_entry *entry)
{
    return entry->length == 0 && zt_text_ends_with(entry->name, zt_text_from("/"));
}

/* Where the headers are that come next. */
struct ahead {
    uint64_t position; /* in the directory */
    uint64_t count;
};

/* Each array's header is before its bytes; several are fetched at once from a remote source. */
static void advise_entries(const struct reading *reading, struct ahead *ahead, uint64_t until)
{
    const struct zip_directory *directory = &reading->directory;
    struct zip_entry entry;

    if (!zt_source_is_remote(reading->source))
        return;
    until = until < directory->entry_count ? until : directory->entry_count;
    while (ahead->count < until &&
           zip_entry_read(directory, reading->builder->model->storage->manifest, &ahead->position,
                          &entry, NULL) == ZT_OK) {
        const uint64_t left =
            directory->offset > entry.header_offset ? directory->offset - entry.header_offset : 0;

        zt_source_advise(reading->source, entry.header_offset,
                         left < GLANCE_BYTES ? left : GLANCE_BYTES);
        ahead->count++;
    }
}

static enum zt_status read_entries(struct reading *reading, struct zt_error *error)
{
    const struct zip_directory *directory = &reading->directory;
    const struct zt_model *model = reading->builder->model;
    struct ahead ahead = {0, 0};
    uint64_t position = 0;
    struct zip_entry entry;

    for (uint64_t i = 0; i < directory->entry_count; i++) {
        enum zt_status status;

        advise_entries(reading, &ahead, i + ENTRIES_AHEAD);
        status = zip_entry_read(directory, model->storage->manifest, &position, &entry, error);
        if (status == ZT_OK && !is_folder(&entry))
            status = take_entry(reading, &entry, error);
        if (status != ZT_OK)
            return status;
    }
    if (position != directory->length)
        return zt_fail(error, ZT_INVALID, "zip §Directory EntryCount", directory->offset + position,
                       "the directory continues after its %" PRIu64 " entries",
                       directory->entry_count);
    return ZT_OK;
}

/* Whether an entry's last path part is that name. */
static bool has_entry(const struct reading *reading, const char *wanted)
{
    const struct zt_text name = zt_text_from(wanted);
    uint64_t position = 0;
    struct zip_entry entry;

    for (uint64_t i = 0; i < reading->directory.entry_count; i++) {
        if (zip_entry_read(&reading->directory, reading->builder->model->storage->manifest,
                           &position, &entry, NULL) != ZT_OK)
            return false;
        if (zt_text_ends_with(entry.name, name) &&
            (entry.name.length == name.length ||
             entry.name.bytes[entry.name.length - name.length - 1] == '/'))
            return true;
    }
    return false;
}

/* An archive without any array that is read: names what people have in its place. */
static enum zt_status refuse_other_archive(const struct reading *reading, struct zt_error *error)
{
    static const struct {
        const char *entry;
        const char *kind;
    } kinds[] = {
        {"archive_format", "a program saved by torch.export (.pt2)"},
        {"serialized_exported_program.json", "a program saved by torch.export (.pt2)"},
        {"model.weights.h5", "a Keras model (.keras)"},
        {"model.weights.npz", "a Keras model (.keras)"},
    };
    const char *kind = "a ZIP archive without NumPy arrays";

    if (reading->refusal->status != ZT_OK) {
        if (error != NULL)
            *error = *reading->refusal;
        return reading->refusal->status;
    }
    for (size_t i = sizeof(kinds) / sizeof(kinds[0]); i-- > 0;)
        if (has_entry(reading, kinds[i].entry))
            kind = kinds[i].kind;
    return zt_fail(error, ZT_UNSUPPORTED, NULL, 0, "the content is %s, which is not supported",
                   kind);
}

static enum zt_status read_directory(void *state, struct zt_builder *builder,
                                     struct zt_error *error)
{
    struct reading *reading = state;
    enum zt_status status;

    reading->builder = builder;
    reading->is_pytorch = has_entry(reading, "data.pkl");
    if (reading->is_pytorch)
        return ZT_UNSUPPORTED; /* npz_open hands it on */
    reading->scratch = malloc(SCRATCH_SIZE);
    reading->lead_lengths =
        calloc((size_t)reading->directory.entry_count + 1, sizeof(*reading->lead_lengths));
    if (reading->scratch == NULL || reading->lead_lengths == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "out of memory");
    status = read_entries(reading, error);
    if (status == ZT_OK && builder->model->object_count == 0 && reading->directory.entry_count > 0)
        status = refuse_other_archive(reading, error);
    if (status == ZT_OK)
        status = unread_members_keep(&reading->unread, &builder->model->storage->arena,
                                     &builder->model->attributes, error);
    return status;
}

/* --- the whole --- */

static enum zt_status locate(void *state, struct zt_source *source,
                             struct zt_manifest_place *out_place, struct zt_error *error)
{
    struct reading *reading = state;
    enum zt_status status = zip_directory_find(source, &reading->directory, error);

    if (status == ZT_OK)
        *out_place = (struct zt_manifest_place){.offset = reading->directory.offset,
                                                .length = reading->directory.length};
    return status;
}

/* Shrinks the range of each component to its own bytes. Each object has one component, so the
 * components are still in the order of the directory, like the lengths. */
static void drop_leads(struct zt_model *model, const uint32_t *lead_lengths)
{
    /* The model is not yet visible to anyone else. */
    struct zt_component *components = (struct zt_component *)(uintptr_t)model->components;

    for (uint32_t i = 0; i < model->component_count; i++) {
        assert(lead_lengths[i] <= components[i].length);
        components[i].offset += lead_lengths[i];
        components[i].length -= lead_lengths[i];
    }
}

static enum zt_status check_model(void *state, struct zt_model *model, struct zt_error *error)
{
    const struct reading *reading = state;
    enum zt_status status = zt_extents_check(model, true, "zip §Entry Overlap", error);

    if (status != ZT_OK)
        return status;
    drop_leads(model, reading->lead_lengths);
    npy_attach_shapes(model);
    return ZT_OK;
}

static const struct zt_reader reader = {
    .format = ZT_FORMAT_NPZ,
    .name = "npz",
    .duplicate_rule = "npz §Names DuplicateName",
    .locate = locate,
    .read = read_directory,
    .check = check_model,
};

enum zt_status npz_open(struct zt_source *source, struct zt_model **out_model,
                        struct zt_error *error)
{
    struct zt_error refusal = {.status = ZT_OK};
    struct reading reading = {.source = source, .refusal = &refusal};
    enum zt_status status = zt_reader_open(&reader, &reading, source, out_model, error);

    unread_members_free(&reading.unread);
    zt_inflate_stream_free(reading.stream);
    free(reading.scratch);
    free(reading.lead_lengths);
    return reading.is_pytorch ? pytorch_zip_open(source, out_model, error) : status;
}
