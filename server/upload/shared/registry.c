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
#include "base/clock.h"
#include "base/hex.h"
#include "base/metrics.h"
#include "derived/manifest_json.h"
#include "http/exchange/authorize.h"
#include "upload/shared/write_checks.h"
#include "zt/digest.h"

struct registry {
    pthread_mutex_t lock;
    struct registry_entry *first; /* sorted by time of creation */
    unsigned counts[UPLOAD_KINDS];
    int64_t expire_s;
};

static_assert((int)METRIC_OPEN_MULTIPART - (int)METRIC_OPEN_FILE == (int)UPLOAD_KIND_MULTIPART,
              "metrics for each kind, in their order");

static const char *const kind_names[] = {
    [UPLOAD_KIND_FILE] = "file",
    [UPLOAD_KIND_WRITER] = "writer",
    [UPLOAD_KIND_RESUMABLE] = "resumable",
    [UPLOAD_KIND_STAGED] = "staged",
    [UPLOAD_KIND_XET] = "xet",
    [UPLOAD_KIND_MULTIPART] = "multipart",
};

/* The lock must be held. */
static void set_count(struct registry *registry, enum upload_kind kind, unsigned count)
{
    assert(kind < UPLOAD_KINDS);
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
    assert(expire_s >= 0);
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

    /* Up to 256 bytes are returned at once when the system has random numbers. A client that knows
     * an id can continue the upload, so a weaker source is not acceptable. */
    while (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        continue;
    zt_hex_write(out_id, bytes, sizeof(bytes));
}

bool registry_id_is_valid(struct zt_text text)
{
    return zt_hex_is_lower(text, UPLOAD_ID_SIZE - 1);
}

void registry_client_name(const char *name, char out_client[CLIENT_SIZE])
{
    const size_t length = strlen(name);
    uint64_t hash[2];

    if (length < CLIENT_SIZE) {
        memcpy(out_client, name, length + 1);
        return;
    }
    zt_xxh3_128(name, length, hash);
    snprintf(out_client, CLIENT_SIZE, "%.*s~%016llx%016llx", CLIENT_SIZE - 1 - 33, name,
             (unsigned long long)hash[0], (unsigned long long)hash[1]);
}

void registry_client(struct request *request, char out_client[CLIENT_SIZE])
{
    if (request->client != NULL)
        registry_client_name(request->client, out_client);
    else
        request_client(request, out_client);
}

/* Maps a kind to the first of the kinds that are counted together with it. */
static enum upload_kind group_of(enum upload_kind kind)
{
    return kind == UPLOAD_KIND_WRITER || kind == UPLOAD_KIND_MULTIPART ? UPLOAD_KIND_RESUMABLE
                                                                       : kind;
}

static bool counts_with(const struct registry_entry *one, const struct registry_entry *other)
{
    return group_of(one->kind) == group_of(other->kind) && one->client[0] != '\0' &&
           strcmp(one->client, other->client) == 0;
}

/* The lock must be held. */
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

    assert(entry->kind < UPLOAD_KINDS);
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

/* --- bodies --- */

bool counted_body_refuse(struct request *request, struct counted_body *body, const char *model,
                         const char *client, uint64_t length)
{
    const unsigned limit =
        (unsigned)config_number(&request->server->config->upload.open_per_client);
    struct registry_entry *entry = &body->entry;

    assert(client == NULL || strlen(client) < sizeof(entry->client));
    assert(!body->is_registered && strlen(model) < sizeof(entry->model));
    body->server = request->server;
    entry->kind = UPLOAD_KIND_FILE;
    registry_make_id(entry->id);
    strcpy(entry->model, model);
    if (client != NULL)
        strcpy(entry->client, client);
    else
        registry_client(request, entry->client);
    entry->created = time(NULL);
    atomic_init(&entry->length, length != UINT64_MAX ? length : 0);
    atomic_init(&entry->active, entry->created);
    body->is_registered = registry_add(request->server->registry, entry, limit);
    if (body->is_registered)
        metric_add(METRIC_BEGUN_FILE, 1);
    else
        write_reply_crowded(request, limit, "upload.open_per_client");
    return !body->is_registered;
}

void counted_body_note(struct counted_body *body, uint64_t received)
{
    assert(received >= atomic_load(&body->entry.received));
    assert(body->is_registered);
    atomic_store(&body->entry.received, received);
    atomic_store(&body->entry.active, time(NULL));
}

void counted_body_end(struct counted_body *body, bool is_done)
{
    if (!body->is_registered)
        return;
    assert(body->server != NULL);
    body->is_registered = false;
    metric_add(is_done ? METRIC_PUBLISHED_FILE : METRIC_FAILED_FILE, 1);
    registry_remove(body->server->registry, &body->entry);
}

static time_t idle_s(const struct registry_entry *entry)
{
    return (time_t)((clock_ms() - atomic_load(&entry->touched_ms)) / 1000);
}

static void write_entry(struct json *json, const struct registry_entry *entry, int64_t expire_s)
{
    time_t active = atomic_load(&entry->active);
    uint64_t length = atomic_load(&entry->length);

    assert(entry->kind < UPLOAD_KINDS);
    json_object_begin(json);
    json_string_member(json, "id", entry->id);
    json_string_member(json, "kind", kind_names[entry->kind]);
    json_key_string(json, "model");
    if (entry->model[0] != '\0')
        json_put_string(json, entry->model);
    else
        json_put_null(json);
    manifest_write_seconds(json, "created", entry->created);
    manifest_write_seconds(json, "active", active);
    json_uint_member(json, "received", atomic_load(&entry->received));
    if (length > 0)
        json_uint_member(json, "length", length);
    if (entry->kind != UPLOAD_KIND_FILE)
        manifest_write_seconds(json, "expires", time(NULL) + (time_t)expire_s - idle_s(entry));
    json_object_end(json);
}

/* Clients that may see only some models do not see parts without a name. */
static bool passes(struct name_filter filter, const struct registry_entry *entry)
{
    const struct zt_text name = zt_text_from(entry->model);

    return filter.passes == NULL ||
           (name.length > 0 &&
            name_filter_passes(filter, entry->is_file ? authorize_name_of_file(name) : name));
}

void registry_write(struct registry *registry, struct name_filter filter, struct json *json)
{
    json_object_begin(json);
    json_array_member(json, "uploads");
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
    return json_reply_send_now(request, json, 200);
}
