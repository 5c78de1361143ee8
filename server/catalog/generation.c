/* Opens a version of a stored file, and frees it with the last reference. */
#include "catalog/generation.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "catalog/catalog_index.h"
#include "catalog/store_folder.h"
#include "parts/joined_parts.h"
#include "store/versions/history.h"
#include "zt/digest.h"
#include "zt/join.h"

/* Increase this whenever the JSON form of a manifest changes, so that caches revalidate. */
#define JSON_FORM_REVISION 4

static void add_shard(uint64_t words[2], const struct file_identity *identity)
{
    const uint64_t inputs[] = {
        words[0],
        words[1],
        identity->inode,
        identity->size_bytes,
        (uint64_t)identity->modified_ns,
        (uint64_t)identity->changed_ns,
    };

    zt_xxh3_128(inputs, sizeof(inputs), words);
}

/* The base path is part of every href in the JSON. */
static void add_base_path(uint64_t words[2], const char *base_path)
{
    const uint64_t inputs[] = {words[0], words[1], zt_xxh3(base_path, strlen(base_path))};

    zt_xxh3_128(inputs, sizeof(inputs), words);
}

/* Includes the time of the last status change, since a writer can set back the modification time.
 * Excludes the device number, which may change on a reboot. */
static void make_etag(struct generation *generation)
{
    const struct zt_model *model = generation->model;
    uint64_t inputs[] = {
        JSON_FORM_REVISION,
        generation->identity.inode,
        generation->identity.size_bytes,
        (uint64_t)generation->identity.modified_ns,
        (uint64_t)generation->identity.changed_ns,
        model != NULL ? model->manifest_hash : 0,
        model != NULL ? model->manifest_offset : 0,
        model != NULL ? model->manifest_length : 0,
    };
    uint64_t words[2];

    assert(generation->etag[0] == '\0');
    zt_xxh3_128(inputs, sizeof(inputs), words);
    if (generation->base_path[0] != '\0')
        add_base_path(words, generation->base_path);
    for (uint32_t i = 0; i < generation->shards.count; i++)
        add_shard(words, &generation->shards.items[i].identity);
    snprintf(generation->etag, sizeof(generation->etag), "\"%016" PRIx64 "%016" PRIx64 "\"",
             words[0], words[1]);
}

/* A model with a missing shard counts as unreadable, since it would list components that cannot be
 * sent. */
static enum zt_status open_shards(struct generation *generation, struct store *store,
                                  struct shard_search *search, struct zt_error *error)
{
    struct store_folder folder = store_folder_of(store, search);
    enum zt_status status;

    assert(generation->model != NULL && generation->model->shard_count > 0);
    status =
        shard_files_open(&generation->shards, generation->path, generation->model, &folder, error);
    if (status != ZT_OK) {
        zt_model_free(generation->model);
        generation->model = NULL;
    }
    return status;
}

static const struct zt_error no_error = {.offset = ZT_NO_OFFSET};
/* The shared error of files that are not models, of which there may be many. */
static const struct zt_error error_of_no_model = {
    .status = ZT_UNSUPPORTED,
    .rule = "zt §Detection UnknownFormat",
    .offset = ZT_NO_OFFSET,
    .message = "the content has no known format; files with this extension are models only if "
               "written by torch.save"};

bool generation_is_hidden(const struct generation *generation)
{
    return generation->error->status == ZT_DATA_SHARD || generation_is_not_a_model(generation);
}

bool generation_is_not_a_model(const struct generation *generation)
{
    return generation->error == &error_of_no_model;
}

/* The extension of such a file does not determine its format. */
bool error_is_not_a_model(const char *path, const struct zt_error *error)
{
    return model_path_needs_sniffing(path) && error->status == ZT_INVALID && error->rule != NULL &&
           strcmp(error->rule, error_of_no_model.rule) == 0;
}

static enum zt_status keep_error(struct generation *generation, const struct zt_error *error)
{
    struct zt_error *copy = malloc(sizeof(*copy));

    assert(generation->error == &no_error && error->status != ZT_OK);
    if (copy == NULL)
        return ZT_NO_MEMORY;
    *copy = *error;
    generation->error = copy;
    return ZT_OK;
}

/* Takes over the files and the model. Returns status, or ZT_NO_MEMORY. */
static enum zt_status take_parts(struct generation *generation, struct joined_parts *parts,
                                 enum zt_status status, struct zt_error *error)
{
    const enum zt_status taken = shard_files_take_parts(&generation->shards, parts, error);

    assert((status == ZT_OK) == (parts->model != NULL));
    if (taken == ZT_OK && parts->own > 0 && parts->count > 0) {
        struct joined_part *first = &parts->items[0];

        generation->own_path = first->path;
        first->path = NULL;
        generation->identity = first->identity;
        generation->source = first->source;
        first->source = NULL;
    }
    if (taken == ZT_OK) {
        generation->model = parts->model;
        parts->model = NULL;
    }
    joined_parts_free(parts);
    return taken != ZT_OK ? taken : status;
}

static enum zt_status read_index(struct generation *generation, struct store *store,
                                 struct zt_error *error)
{
    struct store_folder folder = store_folder_of(store, NULL);
    struct joined_parts parts;
    const enum zt_status status = joined_parts_open_index(
        &folder.base, store_path_folder(generation->path), generation->source, &parts, error);

    return take_parts(generation, &parts, status, error);
}

static enum zt_status read_single(struct generation *generation, struct store *store,
                                  struct shard_search *search, struct zt_error *error)
{
    const char *slash = strrchr(generation->path, '/');
    const struct zt_text name = zt_text_from(slash != NULL ? slash + 1 : generation->path);
    enum zt_status status = zt_model_open(generation->source, &generation->model, error);

    if (status != ZT_OK)
        return status;
    status = zt_gguf_check_name(generation->model, name, error);
    if (status != ZT_OK) {
        zt_model_free(generation->model);
        generation->model = NULL;
        return status;
    }
    return generation->model->shard_count > 0 ? open_shards(generation, store, search, error)
                                              : ZT_OK;
}

static enum zt_status read_model(struct generation *generation, struct store *store,
                                 struct shard_search *search, struct zt_error *error)
{
    assert(generation->source != NULL && generation->model == NULL);
    return generation->is_joined ? read_index(generation, store, error)
                                 : read_single(generation, store, search, error);
}

/* Opens the file and reads its model. */
static enum zt_status read_file(struct generation *generation, struct shard_search *search,
                                struct zt_error *error)
{
    struct store *store = generation->store;
    const enum zt_status status = store->ops->open(store, generation->path, &generation->source,
                                                   &generation->identity, error);

    return status == ZT_OK ? read_model(generation, store, search, error) : status;
}

/* Returns true if the catalog has a part of the split, apart from the parts that could be
 * opened. */
static bool is_known_split(const struct catalog_index *known, const char *path,
                           const struct split_name *name)
{
    const struct zt_text prefix = {path, name->stem.length + 1}; /* with the '-' */
    struct zt_gguf_split split;
    char split_path[MODEL_PATH_SIZE];

    if (known == NULL)
        return false;
    for (size_t i = catalog_index_path_bound(known, prefix);
         i < known->count && strncmp(known->by_path[i]->path, path, prefix.length) == 0; i++) {
        const struct generation *part = known->by_path[i];

        if (part->model != NULL && zt_gguf_split_of(part->model, &split) &&
            split_path_of_part(part->path, split_path) && strcmp(split_path, path) == 0)
            return true;
    }
    return false;
}

/* Returns ZT_NOT_FOUND if no part exists. Files that are only named like parts do not count. */
static enum zt_status read_split(struct generation *generation, const struct catalog_index *known,
                                 struct zt_error *error)
{
    struct store_folder folder = store_folder_of(generation->store, NULL);
    struct joined_parts parts;
    struct split_name name;
    enum zt_status status;

    if (!split_path_read(generation->path, &name))
        return ZT_NOT_FOUND;
    status = joined_parts_open_split(&folder.base, &name, NULL, NULL, &parts, error);
    if (status != ZT_OK && status != ZT_UNAVAILABLE && status != ZT_NO_MEMORY &&
        !parts.has_split_part && !is_known_split(known, generation->path, &name)) {
        joined_parts_free(&parts);
        return ZT_NOT_FOUND;
    }
    return take_parts(generation, &parts, status, error);
}

/* Completes a generation; an error becomes part of it. Returns ZT_NOT_FOUND or ZT_NO_MEMORY if
 * there must be no generation. */
static enum zt_status complete(struct generation *generation, enum zt_status status,
                               struct zt_error *error)
{
    size_t count;

    assert((status == ZT_OK) == (generation->model != NULL));
    if (status == ZT_NO_MEMORY || (status == ZT_NOT_FOUND && generation->source == NULL))
        return status;
    if (status != ZT_OK) {
        error->status = status;
        if (error_is_not_a_model(generation->path, error)) {
            generation->error = &error_of_no_model;
            return ZT_OK;
        }
        return keep_error(generation, error);
    }
    count = generation->model->component_count;
    generation->states = calloc(count > 0 ? count : 1, sizeof(*generation->states));
    return generation->states != NULL ? ZT_OK : ZT_NO_MEMORY;
}

/* Sets the name of an index that has a variant in its file name. */
static bool name_variant(struct generation *generation)
{
    char name[MODEL_NAME_MAX + 1];

    if (model_path_name(generation->path, name))
        generation->variant_name = strdup(name);
    return generation->variant_name != NULL;
}

/* Returns NULL if out of memory, or if the path cannot name a model. */
static struct generation *begin(const struct server *server, const char *path)
{
    struct generation *generation = calloc(1, sizeof(*generation));
    struct history_path commit;
    unsigned rank;

    if (generation == NULL)
        return NULL;
    atomic_init(&generation->references, 1);
    generation->store = server->store;
    generation->base_path = server->config != NULL ? server->config->base_path : "";
    generation->error = &no_error;
    generation->path = strdup(path);
    generation->own_path = generation->path;
    if (generation->path == NULL || !catalog_path_split(path, &generation->name_length, &rank)) {
        generation_release(generation);
        return NULL;
    }
    generation->is_joined = rank == SPLIT_RANK || model_rank_is_index(rank);
    generation->is_of_commit = server->store != NULL && server->store->revisions != NULL &&
                               history_path_split(zt_text_from(path), &commit);
    /* Opened for a request, which a scan must not precede: it drops unused ones. */
    atomic_init(&generation->used, generation->is_of_commit);
    assert(generation->name_length < strlen(path));
    if (model_extension(rank) == NULL && rank != SPLIT_RANK && !name_variant(generation)) {
        generation_release(generation);
        return NULL;
    }
    return generation;
}

/* Ends an opening. Returns NULL if there must be no generation. */
static struct generation *end(struct generation *generation, enum zt_status status,
                              struct zt_error *error)
{
    if (complete(generation, status, error) != ZT_OK) {
        generation_release(generation);
        return NULL;
    }
    assert(generation->model == NULL || generation->error->status == ZT_OK);
    generation->has_parameters =
        generation->model != NULL && zt_model_elements(generation->model, &generation->parameters);
    make_etag(generation);
    return generation;
}

struct generation *generation_open(const struct server *server, const char *path,
                                   struct shard_search *search)
{
    struct generation *generation = begin(server, path);
    struct zt_error error;

    if (generation == NULL)
        return NULL;
    zt_error_clear(&error);
    return end(generation, read_file(generation, search, &error), &error);
}

struct generation *generation_open_split(const struct server *server, const char *path,
                                         const struct catalog_index *known)
{
    struct generation *generation = begin(server, path);
    struct zt_error error;

    if (generation == NULL)
        return NULL;
    zt_error_clear(&error);
    return end(generation, read_split(generation, known, &error), &error);
}

struct generation *generation_hold(struct generation *generation)
{
    unsigned before = atomic_fetch_add(&generation->references, 1);

    assert(before > 0);
    return generation;
}

void generation_release(void *thing)
{
    struct generation *generation = thing;
    unsigned before;

    if (generation == NULL)
        return;
    before = atomic_fetch_sub(&generation->references, 1);
    assert(before > 0);
    if (before > 1)
        return;
    for (unsigned slot = 0; slot < SIDE_TABLES; slot++) {
        struct side_table *table = atomic_load(&generation->side_tables[slot]);

        if (table != NULL)
            table->free(table, generation);
    }
    if (generation->error != &no_error && generation->error != &error_of_no_model)
        free((void *)(uintptr_t)generation->error);
    free(generation->states);
    zt_model_free(generation->model);
    if (generation->shards.items != NULL)
        shard_files_free(&generation->shards);
    zt_source_close(generation->source);
    if (generation_is_split(generation))
        free(generation->own_path);
    free(generation->variant_name);
    free(generation->path);
    free(generation);
}

struct side_table *generation_attach(struct generation *generation, enum side_table_slot slot,
                                     struct side_table *table)
{
    struct side_table *there = NULL;

    assert(slot < SIDE_TABLES && table->free != NULL);
    if (atomic_compare_exchange_strong(&generation->side_tables[slot], &there, table))
        return table;
    table->free(table, generation);
    return there;
}

struct zt_text generation_name(const struct generation *generation)
{
    return generation->variant_name != NULL
               ? zt_text_from(generation->variant_name)
               : (struct zt_text){generation->path, generation->name_length};
}

struct zt_files generation_files(const struct generation *generation)
{
    return (struct zt_files){generation->source, generation->shards.sources};
}

uint64_t generation_size(const struct generation *generation)
{
    uint64_t size_bytes = generation->identity.size_bytes;

    if (!generation->is_joined || generation->model == NULL)
        return size_bytes;
    if (!generation_is_split(generation))
        size_bytes = 0;
    for (uint32_t i = 0; i < generation->shards.count; i++)
        size_bytes += generation->shards.items[i].size_bytes;
    return size_bytes;
}

size_t generation_open_files(const struct generation *generation)
{
    size_t shards = generation->model != NULL ? generation->shards.count : 0;

    return (generation->source != NULL) + shards;
}

static bool all_files_are(const struct generation *generation, identity_comparison *equal)
{
    struct store *store = generation->store;
    struct file_identity now;

    if (generation->source != NULL && store->ops->identity_of(store, generation->source, &now) &&
        !equal(&now, &generation->identity))
        return false;
    return generation->shards.count == 0 || shard_files_are_same(&generation->shards, store, equal);
}

bool generation_is_same(const struct generation *generation)
{
    return all_files_are(generation, store_identity_equal);
}

/* Renaming and removing a file change its status change time, but not its bytes. */
static bool is_unwritten(const struct file_identity *a, const struct file_identity *b)
{
    return a->size_bytes == b->size_bytes && a->modified_ns == b->modified_ns;
}

bool generation_is_unwritten(const struct generation *generation)
{
    return !store_has_locally(generation->store, zt_text_from(generation->path)) ||
           all_files_are(generation, is_unwritten);
}

bool generation_is_unverified(const struct generation *generation)
{
    const struct shard_files *shards = &generation->shards;
    struct store *store = generation->store;

    if (store == NULL || store->revisions == NULL)
        return false;
    if (store_is_unverified(store, generation->own_path, &generation->identity))
        return true;
    for (uint32_t i = 0; i < shards->count; i++)
        if (shards->items[i].path != NULL &&
            store_is_unverified(store, shards->items[i].path, &shards->items[i].identity))
            return true;
    return false;
}

void generation_etag(const struct generation *generation, const char *suffix, char *out_text,
                     size_t size)
{
    const size_t base = strlen(generation->etag) - 1;
    const size_t length = strlen(suffix);
    char *at = out_text + base;

    assert(generation->etag[base] == '"' && base + length + sizeof("-\"") <= size);
    (void)size;
    memcpy(out_text, generation->etag, base);
    *at++ = '-';
    memcpy(at, suffix, length);
    memcpy(at + length, "\"", sizeof("\""));
}

const char *generation_format(const struct generation *generation)
{
    size_t length;
    unsigned rank;

    if (generation->model != NULL)
        return generation->model->format_name;
    if (generation_is_split(generation))
        return "gguf";
    if (!catalog_path_split(generation->path, &length, &rank))
        assert(!"a generation has a model's path");
    if (generation->is_joined)
        return strncmp(model_index_extension(rank), ".bin.", 5) == 0 ? "pytorch" : "safetensors";
    /* In lower case, however the path is spelled. */
    return model_path_needs_sniffing(generation->path) ? "pytorch" : model_extension(rank) + 1;
}

/* Considers all files, since a component in a shard changes with the shard. */
int64_t generation_modified_ns(const struct generation *generation)
{
    int64_t last_ns = generation->identity.modified_ns;

    if (generation->model == NULL && !generation->is_joined)
        return last_ns;
    for (uint32_t i = 0; i < generation->shards.count; i++) {
        int64_t modified_ns = generation->shards.items[i].identity.modified_ns;

        last_ns = modified_ns > last_ns ? modified_ns : last_ns;
    }
    return last_ns;
}

time_t generation_modified(const struct generation *generation)
{
    int64_t modified_ns = generation_modified_ns(generation);
    /* Round down to whole seconds, also before 1970. */
    time_t seconds = (time_t)(modified_ns / CLOCK_NS_PER_S - (modified_ns % CLOCK_NS_PER_S < 0));
    time_t now = time(NULL);

    return seconds < now ? seconds : now;
}
