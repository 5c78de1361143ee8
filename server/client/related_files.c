#include "client/related_files.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client/web_source.h"
#include "http/fields/uri.h"
#include "parts/split_path.h"
#include "zt/join.h"
#include "zt/model.h"
#include "zt/shards.h"

void related_files_free(struct related_files *files)
{
    free(files->names);
    *files = (struct related_files){.names = NULL};
}

/* Returns false if it cannot be the name of a file in the same folder. */
static bool is_file_name(struct zt_text name)
{
    if (name.length == 0 || name.length >= MODEL_FILE_NAME_SIZE || name.bytes[0] == '.')
        return false;
    for (size_t i = 0; i < name.length; i++)
        if ((unsigned char)name.bytes[i] < ' ' || name.bytes[i] == '/' || name.bytes[i] == 0x7F)
            return false;
    return true;
}

static enum zt_status put(struct related_files *files, struct zt_text name, struct zt_error *error)
{
    assert(name.length < MODEL_FILE_NAME_SIZE);
    if (files->count == RELATED_MOST)
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET, "the model has more than %d parts",
                       RELATED_MOST);
    if (files->names == NULL)
        files->names = calloc(RELATED_MOST, sizeof(*files->names));
    if (files->names == NULL)
        return zt_fail_memory(error, "parts");
    memcpy(files->names[files->count], name.bytes, name.length);
    files->names[files->count++][name.length] = '\0';
    return ZT_OK;
}

static enum zt_status add(struct related_files *files, struct zt_text name, struct zt_error *error)
{
    if (!is_file_name(name))
        return zt_fail(error, ZT_INVALID, NULL, ZT_NO_OFFSET,
                       "the model names a part that cannot be a file in its folder");
    return put(files, name, error);
}

/* --- kinds --- */

static enum zt_status add_indexed(struct related_files *files, struct zt_source *source,
                                  struct zt_error *error)
{
    struct zt_index *index = NULL;
    enum zt_status status = zt_index_read(source, &index, error);
    const struct zt_text *names;
    size_t count;

    if (status != ZT_OK)
        return status;
    names = zt_index_parts(index, &count);
    /* The index reader has checked that they are in its folder or below. */
    for (size_t i = 0; i < count && status == ZT_OK; i++)
        status = put(files, names[i], error);
    zt_index_free(index);
    files->own_names = true;
    return status;
}

/* zTensor 2 numbers its shards itself; their names begin with the model's name. */
static enum zt_status add_shards(struct related_files *files, const struct model_file *file,
                                 struct zt_source *source, struct zt_error *error)
{
    struct zt_model *model = NULL;
    struct zt_error ignored;
    enum zt_status status = ZT_OK;

    if (zt_model_open(source, &model, &ignored) != ZT_OK)
        return ZT_OK;
    for (uint32_t i = 0; i < model->shard_count && status == ZT_OK; i++) {
        char *sibling = zt_shard_sibling(file->name, &model->shards[i]);

        if (sibling == NULL)
            status = zt_fail_memory(error, "a path");
        else
            status = add(files, zt_text_from(sibling), error);
        free(sibling);
    }
    zt_model_free(model);
    return status;
}

static enum zt_status add_split(struct related_files *files, const struct model_file *file,
                                struct zt_error *error)
{
    struct split_name name;
    enum zt_status status = ZT_OK;

    if (!split_path_read_first(file->name, zt_text_from(file->name), &name))
        return ZT_OK;
    for (uint32_t i = 2; i <= name.count && status == ZT_OK; i++) {
        char *part = split_part_path(&name, i);

        status =
            part != NULL ? add(files, zt_text_from(part), error) : zt_fail_memory(error, "a path");
        free(part);
    }
    files->own_names = true;
    return status;
}

static bool ends_like(const char *name, const char *extension)
{
    return strlen(name) > strlen(extension) &&
           zt_text_ends_like(zt_text_from(name), zt_text_from(extension));
}

/* Only zTensor 2 has shards; its first eight bytes identify it. */
static bool may_have_shards(struct client *client, const struct web_file *web)
{
    static const uint8_t magic[8] = {0x89, 'Z', 'T', '2', '\r', '\n', 0x1A, '\n'};
    struct remote_exchange exchange;
    struct client_place place = web->place;
    uint8_t bytes[sizeof(magic)];
    struct zt_error error;
    bool has_magic;

    if (web->size < sizeof(magic))
        return false;
    web_file_prepare(client, web, 0, sizeof(magic) - 1, &exchange);
    exchange.into = bytes;
    exchange.into_length = sizeof(bytes);
    has_magic = client_ask(client, &place, &exchange, &error) == ZT_OK &&
                exchange.head.status == 206 && memcmp(bytes, magic, sizeof(magic)) == 0;
    remote_exchange_free(&exchange);
    return has_magic;
}

/* For a server without ranges. The answer belongs to the exchange. */
static enum zt_status open_answer(struct client *client, const struct web_file *web,
                                  struct remote_exchange *exchange, struct zt_source **out_source,
                                  struct zt_error *error)
{
    struct client_place place = web->place;
    enum zt_status status;

    web_file_prepare(client, web, 0, 0, exchange);
    exchange->body_most = ZT_INDEX_BYTES_MAX;
    status = client_ask(client, &place, exchange, error);
    if (status == ZT_OK && exchange->head.status != 200)
        status = client_refusal(exchange, error);
    if (status != ZT_OK)
        return status;
    return zt_source_from_memory(exchange->answer != NULL ? exchange->answer : "",
                                 exchange->answer_length, out_source, error);
}

/* Reads an index completely; of any other file, only the beginning and the manifest. */
static enum zt_status open_source(struct client *client, const struct web_file *web, bool is_index,
                                  struct remote_exchange *exchange, struct zt_source **out_source,
                                  struct zt_error *error)
{
    if (!web->has_ranges && is_index)
        return open_answer(client, web, exchange, out_source, error);
    if (web->has_ranges && (is_index || may_have_shards(client, web)))
        return web_source_open(client, web, out_source, error);
    return ZT_OK;
}

enum zt_status related_files_find(struct client *client, const struct model_file *file,
                                  struct related_files *out_files, struct zt_error *error)
{
    const bool is_index = model_path_is_index(zt_text_from(file->name));
    struct related_files files = {.names = NULL};
    struct remote_exchange exchange;
    struct zt_source *source = NULL;
    struct web_file web;
    enum zt_status status = ZT_OK;

    remote_exchange_init(&exchange);
    if (ends_like(file->name, ".gguf")) {
        status = add_split(&files, file, error);
    } else if (is_index || ends_like(file->name, ".zt")) {
        status = web_file_open(client, &file->place, &web, error);
        if (status == ZT_OK)
            status = open_source(client, &web, is_index, &exchange, &source, error);
        if (status == ZT_OK && source != NULL)
            status = is_index ? add_indexed(&files, source, error)
                              : add_shards(&files, file, source, error);
        zt_source_close(source);
    }
    remote_exchange_free(&exchange);
    if (status != ZT_OK)
        related_files_free(&files);
    else
        *out_files = files;
    return status;
}

enum zt_status related_file_place(const struct model_file *file, const char *name,
                                  struct client_place *out_place, struct zt_error *error)
{
    struct web_address next;
    struct href href;
    bool is_found;

    href_init(&href);
    href_path(&href, zt_text_from(name));
    is_found = !href.failed && web_address_follow(&file->place.address, href.text, &next);
    href_free(&href);
    if (!is_found)
        return zt_fail(error, ZT_INVALID, NULL, ZT_NO_OFFSET, "a part's name is too long");
    *out_place = file->place;
    out_place->address = next;
    return ZT_OK;
}
