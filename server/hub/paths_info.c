/* Describes the files and folders of a repository that a request lists, as a form or as JSON. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/json_reply.h"
#include "http/exchange/json_body.h"
#include "http/exchange/problem.h"
#include "http/fields/uri.h"
#include "hub/handlers.h"
#include "hub/hub_json.h"
#include "hub/hub_request.h"
#include "input/json_read.h"

/* A form and its parts. */
#define FORM_TYPE "application/x-www-form-urlencoded"
#define PATHS_MAX 10000
/* In a JSON body: the paths, and members that clients may add. */
#define COMMAS_MAX   ((size_t)PATHS_MAX + 1000)
#define BRACKETS_MAX ((size_t)1000)

struct wanted {
    struct zt_text path;
    size_t place; /* position in the request */
};

struct paths {
    struct hub_request hub; /* first */
    bool was_read;
    bool expand;
    size_t count;
    struct wanted *list;
};

void hub_paths_begin(struct request *request)
{
    if (!json_body_refuse(request))
        (void)request_new_context(request, sizeof(struct paths));
}

/* --- the request --- */

/* Decodes a form's text, in which '+' is a space. Returns false if it is malformed, or out of
 * memory. */
static bool decode(struct request *request, struct zt_text raw, struct zt_text *out_text)
{
    char *text = request_allocate(request, raw.length + 1);

    if (text == NULL)
        return false;
    memcpy(text, raw.bytes, raw.length);
    for (size_t i = 0; i < raw.length; i++)
        if (text[i] == '+')
            text[i] = ' ';
    out_text->bytes = text;
    return percent_decode((struct zt_text){text, raw.length}, text, &out_text->length);
}

static bool add(struct paths *paths, struct zt_text path)
{
    if (paths->count == PATHS_MAX)
        return false;
    paths->list[paths->count] = (struct wanted){path, paths->count};
    paths->count++;
    return true;
}

/* One "name=value" of a form. */
static bool read_part(struct request *request, struct paths *paths, struct zt_text part)
{
    const char *equals = memchr(part.bytes, '=', part.length);
    struct zt_text name = part;
    struct zt_text value = {"", 0};

    if (equals != NULL) {
        name.length = (size_t)(equals - part.bytes);
        value = (struct zt_text){equals + 1, part.length - name.length - 1};
    }
    if (!decode(request, value, &value))
        return false;
    if (zt_text_is(name, "paths"))
        return add(paths, value);
    if (zt_text_is(name, "expand"))
        paths->expand = hub_text_is_true(value);
    return true;
}

static bool read_form(struct request *request, struct paths *paths, struct zt_text text)
{
    while (text.length > 0) {
        const char *end = memchr(text.bytes, '&', text.length);
        const size_t length = end != NULL ? (size_t)(end - text.bytes) : text.length;

        if (length > 0 && !read_part(request, paths, (struct zt_text){text.bytes, length}))
            return false;
        text.bytes += end != NULL ? length + 1 : length;
        text.length -= end != NULL ? length + 1 : length;
    }
    return true;
}

/* Some clients send booleans as text. */
static bool reads_true(const struct json_t *object, const char *name)
{
    struct zt_text text;

    return json_member_is_true(object, name) ||
           (json_member_text(object, name, &text) == JSON_FOUND && hub_text_is_true(text));
}

static bool read_json(struct request *request, struct paths *paths, struct zt_text text)
{
    struct json_t *object =
        json_is_bounded(text, COMMAS_MAX, BRACKETS_MAX) ? json_object_read(text, NULL) : NULL;
    const struct json_t *list = object != NULL ? json_member_list(object, "paths") : NULL;
    bool is_read = list != NULL;

    for (size_t i = 0; is_read && i < json_list_length(list); i++) {
        struct zt_text path;
        const char *copy = NULL;

        if (json_list_text(list, i, &path))
            copy = request_copy(request, path.bytes, path.length);
        is_read = copy != NULL && add(paths, (struct zt_text){copy, path.length});
    }
    if (is_read)
        paths->expand = reads_true(object, "expand");
    json_object_free(object);
    return is_read;
}

static int compare_paths(const void *a, const void *b)
{
    const struct wanted *first = a;
    const struct wanted *second = b;
    const int order = zt_text_compare(first->path, second->path);

    return order != 0 ? order : (first->place > second->place) - (first->place < second->place);
}

static int compare_places(const void *a, const void *b)
{
    const struct wanted *first = a;
    const struct wanted *second = b;

    return (first->place > second->place) - (first->place < second->place);
}

/* Answers each path once, at its first position. */
static void drop_repeated(struct paths *paths)
{
    size_t kept = 0;

    assert(paths->count <= PATHS_MAX);
    qsort(paths->list, paths->count, sizeof(*paths->list), compare_paths);
    for (size_t i = 0; i < paths->count; i++)
        if (kept == 0 || zt_text_compare(paths->list[kept - 1].path, paths->list[i].path) != 0)
            paths->list[kept++] = paths->list[i];
    paths->count = kept;
    qsort(paths->list, paths->count, sizeof(*paths->list), compare_places);
}

/* Returns false if it has replied. */
static bool read_body(struct request *request, struct paths *paths)
{
    const char *type = request_header(request, "Content-Type");
    bool is_form = type != NULL && strncasecmp(type, FORM_TYPE, strlen(FORM_TYPE)) == 0;
    struct zt_text text;

    if (json_body_refuse_received(request))
        return false;
    text = json_body_text(request);
    paths->list = request_allocate(request, PATHS_MAX * sizeof(*paths->list));
    if (paths->list == NULL) {
        problem_reply_no_memory(request);
        return false;
    }
    if (is_form ? read_form(request, paths, text) : read_json(request, paths, text)) {
        drop_repeated(paths);
        return true;
    }
    problem_reply(request, PROBLEM_INVALID_REQUEST,
                  "send a form with paths, or {\"paths\": [\u2026]}, of at most %d paths",
                  PATHS_MAX);
    return false;
}

/* --- the response --- */

/* Returns the index of the first file below a folder that the client may see; count if there is
 * none. */
static size_t find_below(const struct request *request, const struct hub_request *hub,
                         struct zt_text path)
{
    const struct hub_version *version = hub->version;
    char folder[MODEL_PATH_SIZE];
    const struct zt_text text = {folder, path.length + 1};
    size_t at;

    if (path.length == 0 || path.length + 1 >= sizeof(folder))
        return version->count;
    memcpy(folder, path.bytes, path.length);
    folder[path.length] = '/';
    for (at = hub_version_lower_bound(version, text); at < version->count; at++) {
        if (!zt_text_starts_with(zt_text_from(version->files[at].path), text))
            return version->count;
        if (hub_sees_file(request, hub->target.repo, &version->files[at]))
            return at;
    }
    return version->count;
}

static void write_path(const struct request *request, const struct paths *paths,
                       struct zt_text path, const char *commit)
{
    const struct hub_request *hub = &paths->hub;
    const struct hub_file *file = hub_version_find(hub->version, path);
    size_t at;

    if (file != NULL) {
        if (hub_sees_file(request, hub->target.repo, file))
            hub_json_file(hub->json, file, commit);
        return;
    }
    at = find_below(request, hub, path);
    if (at < hub->version->count)
        hub_json_folder(hub->json, hub->version, at, path.length, commit);
}

static void write_paths(struct request *request, struct hub_request *hub)
{
    const struct paths *paths = request->context;
    const char *commit = paths->expand ? hub_commit(request, hub) : NULL;

    json_array_begin(hub->json);
    for (size_t i = 0; i < paths->count; i++)
        write_path(request, paths, paths->list[i].path, commit);
    json_array_end(hub->json);
}

enum outcome hub_paths_handle(struct request *request)
{
    struct paths *paths = request->context;
    struct hub_request *hub;
    enum outcome outcome;

    if (!paths->was_read) {
        paths->was_read = true;
        if (!read_body(request, paths))
            return OUTCOME_READY;
    }
    hub = hub_find_and_write(request, write_paths, &outcome);
    if (hub == NULL)
        return outcome;
    json_reply_send(request, hub->json);
    return OUTCOME_READY;
}
