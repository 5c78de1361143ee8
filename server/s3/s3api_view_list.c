/* A view's keys begin with the model's name and '-' or '.'. So the views of a page belong to models
 * that are on the page themselves, or whose name ends in the page's prefix, or in a key at the
 * page's ends, before one of these characters. */
#include "s3/s3api_view_list.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define VIEWS_MAX 1000000

struct making {
    struct server *server;
    const struct s3api_keys *keys;
    struct s3api_view_list *list;
    size_t *models; /* indices of stored keys */
    size_t model_count;
    size_t model_capacity;
};

/* --- stored keys --- */

/* Returns the index of the first stored key that is equal or greater. */
static size_t lower_bound(const struct s3api_key_list *keys, struct zt_text text)
{
    size_t low = 0;
    size_t high = keys->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct s3api_key *key = &keys->keys[middle];

        if (zt_text_compare((struct zt_text){key->text, key->length}, text) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns the index of a stored file, SIZE_MAX if there is none of this name and ending. */
static size_t find(const struct s3api_key_list *keys, struct zt_text name, const char *ending)
{
    char path[MODEL_PATH_SIZE];
    const size_t length = name.length + strlen(ending);
    size_t index;

    if (length >= sizeof(path))
        return SIZE_MAX;
    assert(name.length > 0);
    memcpy(path, name.bytes, name.length);
    strcpy(path + name.length, ending);
    index = lower_bound(keys, (struct zt_text){path, length});
    return index < keys->count && strcmp(keys->keys[index].text, path) == 0 ? index : SIZE_MAX;
}

/* Returns true if a stored file has the key, or is in a folder of that name. */
static bool is_taken(const struct s3api_key_list *keys, const char *key)
{
    char folder[VIEW_NAME_SIZE + MODEL_PATH_SIZE + 1];
    const int length = snprintf(folder, sizeof(folder), "%s/", key);
    size_t index = lower_bound(keys, zt_text_from(key));

    assert(length > 1 && length < (int)sizeof(folder));
    if (index < keys->count && strcmp(keys->keys[index].text, key) == 0)
        return true;
    index = lower_bound(keys, zt_text_from(folder));
    return index < keys->count && strncmp(keys->keys[index].text, folder, (size_t)length) == 0;
}

/* --- the models --- */

static enum zt_status add_model(struct making *making, size_t index)
{
    const enum zt_status status =
        zt_array_reserve(&making->models, &making->model_capacity, making->model_count + 1,
                         sizeof(*making->models), VIEWS_MAX);

    if (status == ZT_OK)
        making->models[making->model_count++] = index;
    return status;
}

/* Adds the models whose names end in a text before '-' or '.'. */
static enum zt_status add_models_in(struct making *making, struct zt_text text)
{
    const struct s3api_key_list *keys = making->list->keys;
    enum zt_status status = ZT_OK;
    const char *extension;

    for (size_t i = 1; i < text.length && i < MODEL_NAME_MAX && status == ZT_OK; i++) {
        if (text.bytes[i] != '-' && text.bytes[i] != '.')
            continue;
        for (unsigned n = 0; (extension = s3api_view_extension(n)) != NULL; n++) {
            const size_t index = find(keys, (struct zt_text){text.bytes, i}, extension);

            if (index != SIZE_MAX && status == ZT_OK)
                status = add_model(making, index);
        }
    }
    return status;
}

static enum zt_status find_models(struct making *making, const struct s3api_page_query *query,
                                  const struct s3api_page *page)
{
    enum zt_status status = add_models_in(making, query->prefix);

    if (status == ZT_OK)
        status = add_models_in(making, query->after);
    for (size_t i = 0; i < page->count && status == ZT_OK; i++) {
        const struct s3api_item *item = &page->items[i];

        status = add_models_in(making, item->key);
        if (status == ZT_OK && !item->is_prefix)
            status = add_model(making, item->index);
    }
    return status;
}

/* Returns true if the file is the model of its name, and not another one (as in the catalog). */
static bool is_model(const struct s3api_key_list *keys, const struct s3api_key *key)
{
    struct zt_text name = {key->text, 0};
    const char *extension;
    unsigned rank;

    if (key->is_folder || !model_view_is_of(key->text) ||
        model_path_has_noncanonical_extension(key->text) ||
        !model_path_split(key->text, &name.length, &rank) ||
        find(keys, name, ".safetensors") != SIZE_MAX ||
        find(keys, name, ".safetensors.index.json") != SIZE_MAX)
        return false;
    for (unsigned n = 0; (extension = s3api_view_extension(n)) != NULL; n++)
        if (find(keys, name, extension) != SIZE_MAX)
            return strcmp(key->text + name.length, extension) == 0;
    return false;
}

/* --- their views --- */

static enum zt_status add_key(struct s3api_view_list *list, struct model_view *view, uint32_t part)
{
    char text[VIEW_NAME_SIZE + MODEL_PATH_SIZE];
    struct s3api_view_key key = {.view = view, .part = part};
    enum zt_status status;

    key.length = s3api_view_key(view, part, text);
    assert(text[key.length] == '\0');
    if (is_taken(list->keys, text))
        return ZT_OK;
    status =
        zt_array_reserve(&list->views, &list->capacity, list->count + 1, sizeof(key), VIEWS_MAX);
    if (status != ZT_OK)
        return status;
    key.text = strdup(text);
    if (key.text == NULL)
        return ZT_NO_MEMORY;
    key.before = lower_bound(list->keys, (struct zt_text){text, key.length});
    model_view_hold(view);
    list->views[list->count++] = key;
    return ZT_OK;
}

static enum zt_status add_views(struct making *making, size_t index)
{
    struct s3api_view_list *list = making->list;
    const struct s3api_key *key = &list->keys->keys[index];
    enum zt_status status = ZT_OK;
    struct model_view *view;

    assert(index < list->keys->count);
    if (!is_model(list->keys, key) || !making->keys->is_seen(making->keys->context, index))
        return ZT_OK;
    view = s3api_view_get(making->server, key->text, &key->identity);
    for (uint32_t i = 0; view != NULL && i < s3api_view_count(view) && status == ZT_OK; i++)
        status = add_key(list, view, s3api_view_part(view, i));
    model_view_release(view);
    return status;
}

static int compare_indices(const void *a, const void *b)
{
    const size_t left = *(const size_t *)a;
    const size_t right = *(const size_t *)b;

    return (left > right) - (left < right);
}

static int compare_views(const void *a, const void *b)
{
    return strcmp(((const struct s3api_view_key *)a)->text,
                  ((const struct s3api_view_key *)b)->text);
}

static enum zt_status add_all(struct making *making)
{
    enum zt_status status = ZT_OK;

    if (making->model_count > 1)
        qsort(making->models, making->model_count, sizeof(*making->models), compare_indices);
    for (size_t i = 0; i < making->model_count && status == ZT_OK; i++)
        if (i == 0 || making->models[i] != making->models[i - 1])
            status = add_views(making, making->models[i]);
    if (making->list->count > 1)
        qsort(making->list->views, making->list->count, sizeof(*making->list->views),
              compare_views);
    return status;
}

enum zt_status s3api_view_list_make(struct server *server, const struct s3api_key_list *stored,
                                    const struct s3api_keys *keys,
                                    const struct s3api_page_query *query,
                                    const struct s3api_page *page,
                                    struct s3api_view_list *out_views)
{
    struct making making = {.server = server, .keys = keys, .list = out_views};
    enum zt_status status = ZT_OK;

    *out_views = (struct s3api_view_list){.keys = stored};
    if (server->config->hub.views && query->limit > 0)
        status = find_models(&making, query, page);
    if (status == ZT_OK)
        status = add_all(&making);
    free(making.models);
    if (status != ZT_OK)
        s3api_view_list_free(out_views);
    return status;
}

void s3api_view_list_free(struct s3api_view_list *views)
{
    for (size_t i = 0; i < views->count; i++) {
        free(views->views[i].text);
        model_view_release(views->views[i].view);
    }
    free(views->views);
    *views = (struct s3api_view_list){.keys = NULL};
}

/* --- the common order --- */

size_t s3api_view_list_count(const struct s3api_view_list *views)
{
    return views->keys->count + views->count;
}

const struct s3api_view_key *s3api_view_list_at(const struct s3api_view_list *views, size_t index,
                                                size_t *out_stored)
{
    size_t low = 0;
    size_t high = views->count;

    assert(index < s3api_view_list_count(views));
    /* Finds the number of views before the index. A view's index is the number of all keys before
     * it. */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (views->views[middle].before + middle < index)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < views->count && views->views[low].before + low == index)
        return &views->views[low];
    assert(index - low < views->keys->count);
    *out_stored = index - low;
    return NULL;
}
