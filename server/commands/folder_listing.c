/* The models below a folder or on a server: name, format, objects, parameters, size, and why one
 * cannot be read. */
#include "commands/folder_listing.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/memory.h"
#include "client/model_listing.h"
#include "client/model_source.h"
#include "commands/listing.h"
#include "derived/manifest_json.h"
#include "files/opened_file.h"
#include "input/json_read.h"
#include "store/store.h"
#include "terminal/plain_text.h"

/* Longer names are cut in the table. */
#define NAME_WIDTH_MAX 60
#define KIND_SIZE      32
#define VERSION_SIZE   24
#define SIZE_SIZE      32

struct listed_model {
    const struct folder_model *file; /* NULL: it is on a server */
    char *text;                      /* how the server describes it, in JSON; NULL: a local file */
    char *own_name;                  /* NULL: name is borrowed */
    struct zt_text name;
    char format[KIND_SIZE];
    char version[VERSION_SIZE];
    uint32_t object_count;
    bool has_parameters; /* their number is known */
    uint64_t parameters;
    uint64_t size_bytes;
    int64_t modified_ns;
    struct zt_error *error; /* NULL: it can be read */
};

/* --- reading --- */

static void describe(const struct opened_file *opened, struct listed_model *model)
{
    const struct zt_text version = opened->model->version;

    model->name = zt_text_from(model->file->name);
    if (opened->variant_name == NULL) {
        model->name = opened_file_name(opened, model->file->below);
        /* The folders above it are part of the name too. */
        model->name.length += (size_t)(model->name.bytes - model->file->below);
        model->name.bytes = model->file->below;
    }
    snprintf(model->format, sizeof(model->format), "%s", opened->model->format_name);
    snprintf(model->version, sizeof(model->version), "%.*s", (int)version.length, version.bytes);
    model->object_count = opened->model->object_count;
    model->has_parameters = zt_model_elements(opened->model, &model->parameters);
    model->size_bytes = opened_file_size(opened, model->file->path);
    if (!opened_file_modified_ns(opened, &model->modified_ns))
        model->modified_ns = 0;
}

/* The format that the extension promises, as the server shows it. */
static enum zt_status note_error(struct folder_listing *listing, struct listed_model *model,
                                 const struct zt_error *why, struct zt_error *error)
{
    const unsigned rank = model->file->rank;
    const char *extension =
        model_rank_is_index(rank) ? model_index_extension(rank) : model_extension(rank);
    struct stat info;
    const bool is_there = stat(model->file->path, &info) == 0;

    model->error = malloc(sizeof(*model->error));
    if (model->error == NULL)
        return zt_fail_memory(error, "a listing");
    *model->error = *why;
    model->name = zt_text_from(model->file->name);
    if (model_path_needs_sniffing(model->file->path) || strncmp(extension, ".bin.", 5) == 0)
        extension = ".pytorch";
    snprintf(model->format, sizeof(model->format), "%.*s", (int)strcspn(extension + 1, "."),
             extension + 1);
    model->size_bytes = is_there ? (uint64_t)info.st_size : 0;
    model->modified_ns = is_there ? info.st_mtim.tv_sec * CLOCK_NS_PER_S + info.st_mtim.tv_nsec : 0;
    listing->bad++;
    return ZT_OK;
}

static enum zt_status add_model(struct folder_listing *listing, const struct folder_model *file,
                                struct zt_error *error)
{
    struct listed_model model = {.file = file};
    struct opened_file opened;
    struct zt_error why;

    if (opened_file_open(file->path, &opened, &why) == ZT_OK) {
        describe(&opened, &model);
        opened_file_close(&opened);
    } else if (folder_model_is_hidden(file, &why)) {
        return ZT_OK;
    } else if (note_error(listing, &model, &why, error) != ZT_OK) {
        return error->status;
    }
    assert(listing->count < listing->folder.count);
    listing->models[listing->count++] = model;
    return ZT_OK;
}

enum zt_status folder_listing_make(const char *path, struct folder_listing *out_listing,
                                   struct zt_error *error)
{
    struct folder_listing listing = {.count = 0};
    enum zt_status status = model_folder_list(path, &listing.folder, error);

    if (status != ZT_OK)
        return status;
    listing.models = calloc(listing.folder.count + 1, sizeof(*listing.models));
    if (listing.models == NULL) {
        model_folder_free(&listing.folder);
        return zt_fail_memory(error, "a listing");
    }
    for (size_t i = 0; i < listing.folder.count && status == ZT_OK; i++)
        status = add_model(&listing, &listing.folder.files[i], error);
    if (status != ZT_OK) {
        folder_listing_free(&listing);
        return status;
    }
    *out_listing = listing;
    return ZT_OK;
}

void folder_listing_free(struct folder_listing *listing)
{
    for (size_t i = 0; i < listing->count; i++) {
        free(listing->models[i].text);
        free(listing->models[i].own_name);
        free(listing->models[i].error);
    }
    free(listing->models);
    model_folder_free(&listing->folder);
}

/* --- of a server --- */

static void copy_text(const struct json_t *object, const char *name, char *out_text, size_t size)
{
    struct zt_text text;

    if (json_member_text(object, name, &text) == JSON_FOUND)
        snprintf(out_text, size, "%s", text.bytes);
}

static bool note_refusal(struct folder_listing *listing, struct listed_model *model,
                         const struct json_t *refusal)
{
    struct zt_text detail = {"", 0};

    (void)json_member_text(refusal, "detail", &detail);
    model->error = malloc(sizeof(*model->error));
    if (model->error == NULL)
        return false;
    zt_fail(model->error, ZT_INVALID, NULL, ZT_NO_OFFSET, "%s", detail.bytes);
    listing->bad++;
    return true;
}

static bool add_listed(void *context, const struct json_t *object)
{
    struct folder_listing *listing = context;
    const struct json_t *refusal = json_member_object(object, "error");
    struct listed_model model = {.file = NULL, .text = json_object_text(object)};
    struct zt_text name = {"", 0};
    uint64_t objects = 0;

    (void)json_member_text(object, "name", &name);
    model.own_name = strdup(name.bytes);
    copy_text(object, "format", model.format, sizeof(model.format));
    copy_text(object, "version", model.version, sizeof(model.version));
    (void)json_member_whole(object, "objects", &objects);
    (void)json_member_whole(object, "size", &model.size_bytes);
    model.has_parameters = json_member_whole(object, "parameters", &model.parameters) == JSON_FOUND;
    model.object_count = (uint32_t)objects;
    if (model.own_name == NULL || model.text == NULL ||
        zt_array_reserve(&listing->models, &listing->capacity, listing->count + 1,
                         sizeof(*listing->models), SIZE_MAX / sizeof(model)) != ZT_OK ||
        (refusal != NULL && !note_refusal(listing, &model, refusal))) {
        free(model.text);
        free(model.own_name);
        return false;
    }
    model.name = zt_text_from(model.own_name);
    listing->models[listing->count++] = model;
    return true;
}

enum zt_status folder_listing_fetch(const char *url, struct folder_listing *out_listing,
                                    struct zt_error *error)
{
    struct folder_listing listing = {.count = 0};
    struct client *client;
    enum zt_status status = model_source_client(&client, error);

    if (status == ZT_OK)
        status = model_listing_fetch(client, url, add_listed, &listing, error);
    if (status == ZT_OK)
        *out_listing = listing;
    else
        folder_listing_free(&listing);
    return status;
}

/* --- the table --- */

enum column { NAME, FORMAT, OBJECTS, PARAMETERS, SIZE, COLUMNS };

static const char *const titles[COLUMNS] = {"NAME", "FORMAT", "OBJECTS", "PARAMETERS", "SIZE"};

static bool is_number(enum column column)
{
    return column == OBJECTS || column == PARAMETERS || column == SIZE;
}

static size_t write_cell(FILE *stream, const struct listed_model *model, enum column column)
{
    char text[KIND_SIZE + VERSION_SIZE];

    switch (column) {
    case NAME:
        return plain_text_write_short(stream, model->name.bytes, model->name.length,
                                      NAME_WIDTH_MAX);
    case FORMAT:
        snprintf(text, sizeof(text), "%s%s%s", model->format, model->version[0] != '\0' ? " " : "",
                 model->version);
        break;
    case OBJECTS:
        snprintf(text, sizeof(text), "%" PRIu32, model->object_count);
        if (model->error != NULL)
            snprintf(text, sizeof(text), "-");
        break;
    case PARAMETERS:
        listing_format_count(model->parameters, text, sizeof(text));
        if (!model->has_parameters)
            snprintf(text, sizeof(text), "-");
        break;
    default:
        listing_format_size(model->size_bytes, text, sizeof(text));
        break;
    }
    return plain_text_write(stream, text, strlen(text));
}

static void write_padded(FILE *stream, const struct listed_model *model, enum column column,
                         size_t width)
{
    const size_t used = model != NULL ? write_cell(NULL, model, column) : strlen(titles[column]);
    const int padding = (int)(width > used ? width - used : 0);

    if (is_number(column))
        fprintf(stream, "%*s", padding, "");
    if (model != NULL)
        write_cell(stream, model, column);
    else
        fputs(titles[column], stream);
    if (!is_number(column))
        fprintf(stream, "%*s", padding, "");
}

/* model NULL: the titles. */
static void write_row(const struct folder_listing *listing, const struct listed_model *model,
                      const size_t widths[COLUMNS], FILE *stream)
{
    for (int column = 0; column < COLUMNS; column++) {
        if (column > 0)
            fputs("  ", stream);
        write_padded(stream, model, (enum column)column, widths[column]);
    }
    if (model == NULL && listing->bad > 0)
        fputs("  ERROR", stream);
    if (model != NULL && model->error != NULL) {
        fputs("  ", stream);
        failure_write(stream, model->error);
    }
    fputc('\n', stream);
}

void folder_listing_print(const struct folder_listing *listing, FILE *stream)
{
    size_t widths[COLUMNS];
    uint64_t bytes = 0;
    char size[SIZE_SIZE];

    for (int column = 0; column < COLUMNS; column++) {
        widths[column] = strlen(titles[column]);
        for (size_t i = 0; i < listing->count; i++) {
            const size_t width = write_cell(NULL, &listing->models[i], (enum column)column);

            widths[column] = width > widths[column] ? width : widths[column];
        }
    }
    if (listing->count > 0)
        write_row(listing, NULL, widths, stream);
    for (size_t i = 0; i < listing->count; i++) {
        write_row(listing, &listing->models[i], widths, stream);
        bytes += listing->models[i].size_bytes;
    }
    listing_format_size(bytes, size, sizeof(size));
    fprintf(stream, "%zu model%s, %s", listing->count, listing->count == 1 ? "" : "s", size);
    if (listing->bad > 0)
        fprintf(stream, "; %zu cannot be read", listing->bad);
    if (listing->folder.misnamed_files > 0)
        fprintf(stream, "; %zu file%s skipped, because the name%s cannot be served",
                listing->folder.misnamed_files, listing->folder.misnamed_files == 1 ? "" : "s",
                listing->folder.misnamed_files == 1 ? "" : "s");
    if (listing->folder.shadowed > 0)
        fprintf(stream, "; %zu file%s hidden by another of the same name", listing->folder.shadowed,
                listing->folder.shadowed == 1 ? "" : "s");
    fputc('\n', stream);
}

void folder_listing_print_names(const struct folder_listing *listing, FILE *stream)
{
    for (size_t i = 0; i < listing->count; i++) {
        plain_text_write(stream, listing->models[i].name.bytes, listing->models[i].name.length);
        fputc('\n', stream);
    }
}

/* --- JSON --- */

static void put_error(struct json *json, const struct zt_error *error)
{
    json_object_member(json, "error");
    json_string_member(json, "code",
                       error->status == ZT_IO || error->status == ZT_NO_MEMORY ? "internal"
                                                                               : "invalid-model");
    json_string_member(json, "detail", error->message);
    json_object_end(json);
}

static void put_model(struct json *json, const struct listed_model *model)
{
    json_object_begin(json);
    json_key_string(json, "name");
    json_text(json, model->name);
    json_string_member(json, "path", model->file->path);
    json_string_member(json, "format", model->format);
    json_key_string(json, "version");
    if (model->error == NULL)
        json_put_string(json, model->version);
    else
        json_put_null(json);
    json_uint_member(json, "size", model->size_bytes);
    json_key_string(json, "objects");
    if (model->error == NULL)
        json_uint(json, model->object_count);
    else
        json_put_null(json);
    json_key_string(json, "parameters");
    if (model->has_parameters)
        json_uint(json, model->parameters);
    else
        json_put_null(json);
    json_key_string(json, "modified");
    manifest_write_time(json, model->modified_ns);
    if (model->error != NULL)
        put_error(json, model->error);
    json_object_end(json);
}

void folder_listing_print_json(const struct folder_listing *listing, FILE *stream)
{
    for (size_t i = 0; i < listing->count; i++) {
        struct json json;

        if (listing->models[i].text != NULL) {
            fprintf(stream, "%s%s\n", i > 0 ? ",\n" : "", listing->models[i].text);
            continue;
        }
        json_init(&json, true);
        put_model(&json, &listing->models[i]);
        if (!json.failed)
            fprintf(stream, "%s%.*s", i > 0 ? ",\n" : "", (int)json.length, json.text);
        json_free(&json);
    }
}
