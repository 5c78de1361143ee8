#include "client/remote_digests.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hex.h"
#include "client/json_answer.h"
#include "http/fields/uri.h"
#include "input/json_read.h"
#include "store/store.h"

#define FILES "/files/"
#define QUERY "?digests&fields=components&attributes=false"
/* Longer pauses for models that take long: a server hashes about 1 GiB a second. */
#define PAUSE_FIRST_MS 50
#define PAUSE_MOST_MS  2000
/* It may be busy with other models, whose digests come first. */
#define IDLE_MOST_MS      15000
#define SHA256_BYTES_TEXT 64

/* Begins the path of the model: the file's path, without its extension, is the model's name.
 * Returns false, and allocates no memory, if the file is not below /files. */
static bool begin_model(const struct client_place *place, struct href *href)
{
    const struct zt_text path = web_address_path(&place->address);
    const char *files = memmem(path.bytes, path.length, FILES, strlen(FILES));
    const size_t before = files != NULL ? (size_t)(files - path.bytes) : 0;
    char decoded[WEB_TARGET_SIZE];
    char name[MODEL_NAME_MAX + 1];
    size_t length;

    if (files == NULL || path.length >= sizeof(decoded) ||
        !percent_decode(
            (struct zt_text){files + strlen(FILES), path.length - before - strlen(FILES)}, decoded,
            &length))
        return false;
    decoded[length] = '\0';
    if (strlen(decoded) != length || !model_path_name(decoded, name))
        return false;
    assert(before + strlen(FILES) <= path.length);
    snprintf(decoded, sizeof(decoded), "%.*s", (int)before, path.bytes);
    href_init(href);
    href_plain(href, decoded);
    href_model(href, zt_text_from(name));
    return true;
}

static bool find_manifest(const struct client_place *place, struct client_place *out_manifest)
{
    struct zt_error error;
    struct href href;
    bool is_found;

    if (!begin_model(place, &href))
        return false;
    href_plain(&href, QUERY);
    is_found = !href.failed && client_place_beside(place, href.text, out_manifest, &error) == ZT_OK;
    href_free(&href);
    return is_found;
}

static void pause(unsigned ms)
{
    const struct timespec time = {ms / 1000, (long)(ms % 1000) * 1000000};

    nanosleep(&time, NULL);
}

struct json_t *remote_digests_ask(struct client *client, const struct client_place *place)
{
    int64_t idle_since_ms = clock_ms();
    unsigned pause_ms = PAUSE_FIRST_MS;
    uint64_t before = UINT64_MAX;
    struct client_place manifest;

    if (!find_manifest(place, &manifest))
        return NULL;
    for (;;) {
        struct client_place asked = manifest;
        struct json_t *answer = NULL;
        struct zt_error error;
        uint64_t pending;

        if (json_answer_ask(client, &asked, &answer, NULL, &error) != ZT_OK)
            return NULL;
        if (json_member_whole(answer, "pending_digests", &pending) != JSON_FOUND || pending == 0)
            return answer;
        if (pending < before)
            idle_since_ms = clock_ms();
        else if (clock_ms() - idle_since_ms > IDLE_MOST_MS)
            return answer;
        before = pending;
        json_object_free(answer);
        pause(pause_ms);
        pause_ms = pause_ms < PAUSE_MOST_MS ? pause_ms * 2 : pause_ms;
    }
}

static const struct json_t *member(const struct json_t *object, struct zt_text name)
{
    const struct json_t *found = NULL;
    char *text;

    if (object == NULL || memchr(name.bytes, '\0', name.length) != NULL)
        return NULL;
    text = strndup(name.bytes, name.length);
    if (text != NULL)
        found = json_member_object(object, text);
    free(text);
    return found;
}

bool remote_digests_find(const struct json_t *manifest, const struct zt_object *object,
                         const struct zt_component *component, uint8_t out_sha256[32])
{
    const struct json_t *objects = json_member_object(manifest, "objects");
    const struct json_t *found = member(objects, zt_object_name(object));
    struct zt_text text;
    uint64_t length;

    found = found != NULL
                ? member(json_member_object(found, "components"), zt_component_name(component))
                : NULL;
    return found != NULL && json_member_whole(found, "length", &length) == JSON_FOUND &&
           length == component->length && json_member_text(found, "sha256", &text) == JSON_FOUND &&
           text.length == SHA256_BYTES_TEXT && zt_hex_read_lower(text, out_sha256, 32);
}

char *remote_component_target(const struct client_place *place, const struct zt_object *object,
                              const struct zt_component *component, const char *query)
{
    struct href href;
    char *target;

    if (!begin_model(place, &href))
        return NULL;
    href_plain(&href, "/objects/");
    href_segment(&href, zt_object_name(object));
    href_plain(&href, "/");
    href_segment(&href, zt_component_name(component));
    href_plain(&href, query);
    target = href.failed ? NULL : strdup(href.text);
    href_free(&href);
    return target;
}
