/* A list under one lock, which is enough: uploads begin and end far less often than bytes
 * arrive. */
#include "upload/shared/registry.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "api/json_reply.h"
#include "api/parameters.h"
#include "base/metrics.h"
#include "derived/manifest_json.h"
#include "http/exchange/authorize.h"

struct registry {
    pthread_mutex_t lock;
    struct registry_entry *first; /* by time of creation */
    unsigned counts[UPLOAD_KINDS];
    int64_t expire_s;
};

static_assert((int)METRIC_OPEN_XET - (int)METRIC_OPEN_FILE == (int)UPLOAD_KIND_XET,
              "metrics for each kind, in their order");

static const char *const kind_names[] = {
    [UPLOAD_KIND_FILE] = "file",
    [UPLOAD_KIND_WRITER] = "writer",
    [UPLOAD_KIND_RESUMABLE] = "resumable",
    [UPLOAD_KIND_STAGED] = "staged",
    [UPLOAD_KIND_XET] = "xet",
};

/* With the lock held. */
static void set_count(struct registry *registry, enum upload_kind kind, unsigned count)
{
    registry->counts[kind] = count;
    metric_set(METRIC_OPEN_FILE + (enum metric)kind, count);
}

struct registry *registry_new(int64_t expire_s)
{
    struct registry *registry = calloc(1, sizeof(*registry));

    if (registry != NULL) {
        pthread_mutex_init(&registry->lock, NULL);
        registry->expire_s = expire_s;
        for (enum upload_kind kind = 0; kind < UPLOAD_KINDS; kind++)
            set_count(registry, kind, 0);
    }
    return registry;
}

void registry_set_expiry(struct registry *registry, int64_t expire_s)
{
    pthread_mutex_lock(&registry->lock);
    registry->expire_s = expire_s;
    pthread_mutex_unlock(&registry->lock);
}

void registry_free(struct registry *registry)
{
    if (registry != NULL) {
        assert(registry->first == NULL);
        pthread_mutex_destroy(&registry->lock);
        free(registry);
    }
}

void registry_make_id(char out_id[UPLOAD_ID_SIZE])
{
    uint8_t bytes[(UPLOAD_ID_SIZE - 1) / 2];

    /* Up to 256 bytes are returned at once when the system has random numbers. Whoever knows an id
     * can continue the upload, so a weaker source will not do. */
    while (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        continue;
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(out_id + 2 * i, 3, "%02x", bytes[i]);
}

bool registry_id_is_valid(struct zt_text text)
{
    size_t digits = 0;

    while (digits < text.length && memchr("0123456789abcdef", text.bytes[digits], 16) != NULL)
        digits++;
    return digits == text.length && text.length == UPLOAD_ID_SIZE - 1;
}

void registry_client(struct request *request, char out_client[CLIENT_SIZE])
{
    if (request->client != NULL)
        snprintf(out_client, CLIENT_SIZE, "%s", request->client);
    else
        request_client(request, out_client);
}

/* The kinds that are counted together. */
static enum upload_kind group_of(enum upload_kind kind)
{
    return kind == UPLOAD_KIND_WRITER ? UPLOAD_KIND_RESUMABLE : kind;
}

static bool counts_with(const struct registry_entry *one, const struct registry_entry *other)
{
    return group_of(one->kind) == group_of(other->kind) && one->client[0] != '\0' &&
           strcmp(one->client, other->client) == 0;
}

/* With the lock held. */
static unsigned count_like(const struct registry *registry, const struct registry_entry *entry)
{
    unsigned count = 0;

    for (const struct registry_entry *one = registry->first; one != NULL; one = one->next)
        count += counts_with(one, entry);
    return count;
}

bool registry_add(struct registry *registry, struct registry_entry *entry, unsigned limit)
{
    bool fits;

    assert(entry->next == NULL);
    pthread_mutex_lock(&registry->lock);
    fits = limit == 0 || count_like(registry, entry) < limit;
    if (fits) {
        struct registry_entry **at = &registry->first;

        while (*at != NULL && (*at)->created <= entry->created)
            at = &(*at)->next;
        entry->next = *at;
        *at = entry;
        set_count(registry, entry->kind, registry->counts[entry->kind] + 1);
    }
    pthread_mutex_unlock(&registry->lock);
    return fits;
}

void registry_remove(struct registry *registry, struct registry_entry *entry)
{
    struct registry_entry **at;

    pthread_mutex_lock(&registry->lock);
    at = &registry->first;
    while (*at != NULL && *at != entry)
        at = &(*at)->next;
    if (*at != NULL) {
        *at = entry->next;
        entry->next = NULL;
        assert(registry->counts[entry->kind] > 0);
        set_count(registry, entry->kind, registry->counts[entry->kind] - 1);
    }
    pthread_mutex_unlock(&registry->lock);
}

static void write_time(struct json *json, const char *key, time_t time)
{
    json_key_string(json, key);
    manifest_write_time(json, (int64_t)time * 1000000000);
}

static void write_entry(struct json *json, const struct registry_entry *entry, int64_t expire_s)
{
    time_t active = atomic_load(&entry->active);
    uint64_t length = atomic_load(&entry->length);

    json_object_begin(json);
    json_key_string(json, "id");
    json_put_string(json, entry->id);
    json_key_string(json, "kind");
    json_put_string(json, kind_names[entry->kind]);
    json_key_string(json, "model");
    if (entry->model[0] != '\0')
        json_put_string(json, entry->model);
    else
        json_put_null(json);
    write_time(json, "created", entry->created);
    write_time(json, "active", active);
    json_key_string(json, "received");
    json_uint(json, atomic_load(&entry->received));
    if (length > 0) {
        json_key_string(json, "length");
        json_uint(json, length);
    }
    if (entry->kind != UPLOAD_KIND_FILE)
        write_time(json, "expires", active + (time_t)expire_s);
    json_object_end(json);
}

/* Whoever may see only some models sees no nameless parts. */
static bool passes(struct name_filter filter, const struct registry_entry *entry)
{
    return filter.passes == NULL ||
           (entry->model[0] != '\0' && name_filter_passes(filter, zt_text_from(entry->model)));
}

void registry_write(struct registry *registry, struct name_filter filter, struct json *json)
{
    json_object_begin(json);
    json_key_string(json, "uploads");
    json_array_begin(json);
    pthread_mutex_lock(&registry->lock);
    for (const struct registry_entry *entry = registry->first; entry != NULL; entry = entry->next)
        if (passes(filter, entry))
            write_entry(json, entry, registry->expire_s);
    pthread_mutex_unlock(&registry->lock);
    json_array_end(json);
    json_object_end(json);
}

/* --- GET /v1/uploads --- */

enum outcome uploads_list(struct request *request)
{
    struct json *json;
    bool pretty;

    if (!parameter_switch(request, "pretty", &pretty))
        return OUTCOME_READY;
    json = json_reply_new(request, pretty);
    if (json == NULL)
        return OUTCOME_READY;
    registry_write(request->server->registry, authorize_filter(request), json);
    json_reply_send(request, json);
    if (!json->failed)
        request->reply.cache_control = "no-store";
    return OUTCOME_READY;
}
