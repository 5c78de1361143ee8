/* Reads the body of an export with jansson. The number of values is bounded before, and every
 * mistake names its place with a JSON pointer (RFC 6901). */
#include "derived/export_body.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "base/hex.h"
#include "base/nearest.h"
#include "input/json_read.h"

#define SHA256_PREFIX "sha256:"
/* Two long lists, and the other members. */
#define COMMAS_MAX (2 * EXPORT_LIST_MAX + 4 * GLOB_SET_MAX)
/* One object, and some lists in it; more lets messages say where the mistake is. */
#define BRACKETS_MAX 1000
/* Longer names of members are cut in messages. */
#define SHOWN_MAX 40

static const char *const members[] = {"format", "prefix", "match", "objects", "shard",
                                      "axis",   "dtype",  "have",  "base",    NULL};

/* --- mistakes --- */

static bool fail(struct export_body *body, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool fail(struct export_body *body, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(body->why, sizeof(body->why), format, arguments);
    va_end(arguments);
    return false;
}

static bool fail_memory(struct export_body *body)
{
    body->is_out_of_memory = true;
    return fail(body, "no memory for the body");
}

/* Writes a name as a token of a JSON pointer. */
static void write_token(const char *name, char out_token[2 * SHOWN_MAX + 1])
{
    size_t length = 0;

    for (size_t i = 0; name[i] != '\0' && i < SHOWN_MAX; i++) {
        const bool is_escaped = name[i] == '~' || name[i] == '/';

        out_token[length++] = is_escaped ? '~' : name[i];
        if (is_escaped)
            out_token[length++] = name[i] == '~' ? '0' : '1';
    }
    out_token[length] = '\0';
}

static bool check_known(struct export_body *body)
{
    const char *name = json_member_other(body->json, members);
    char token[2 * SHOWN_MAX + 1];
    struct nearest nearest;

    if (name == NULL)
        return true;
    write_token(name, token);
    nearest_begin(&nearest, name);
    for (size_t i = 0; strlen(name) < SHOWN_MAX && members[i] != NULL; i++)
        nearest_offer(&nearest, members[i]);
    if (nearest.word != NULL)
        return fail(body, "/%s: unknown member; did you mean %s?", token, nearest.word);
    return fail(body,
                "/%s: unknown member; use format, prefix, match, objects, shard, axis, dtype, have "
                "or base",
                token);
}

/* --- members that are one text, or a list --- */

struct values {
    const char *name;
    const struct json_t *object;
    const struct json_t *list; /* NULL: the member is one value */
    size_t count;              /* 0: absent or empty */
};

static struct values values_of(const struct export_body *body, const char *name)
{
    struct values values = {name, body->json, json_member_list(body->json, name), 1};

    assert(body->json != NULL);
    if (values.list != NULL)
        values.count = json_list_length(values.list);
    else if (!json_member_exists(body->json, name))
        values.count = 0;
    return values;
}

static bool value_text(const struct values *values, size_t index, struct zt_text *out_text)
{
    return values->list != NULL
               ? json_list_text(values->list, index, out_text)
               : json_member_text(values->object, values->name, out_text) == JSON_FOUND;
}

static bool value_integer(const struct values *values, size_t index, int64_t *out_number)
{
    return values->list != NULL
               ? json_list_integer(values->list, index, out_number)
               : json_member_integer(values->object, values->name, out_number) == JSON_FOUND;
}

static bool fail_value(struct export_body *body, const struct values *values, size_t index,
                       const char *what)
{
    if (values->list == NULL)
        return fail(body, "/%s: %s", values->name, what);
    return fail(body, "/%s/%zu: %s", values->name, index, what);
}

/* Reads a text; an absent member leaves it unchanged. */
static bool read_text(struct export_body *body, const char *name, struct zt_text *io_text)
{
    if (json_member_text(body->json, name, io_text) == JSON_OTHER)
        return fail(body, "/%s: must be text", name);
    return true;
}

/* Refuses an empty list, which would select everything. */
static bool refuse_empty(struct export_body *body, const char *name)
{
    if (values_of(body, name).count > 0 || !json_member_exists(body->json, name))
        return true;
    return fail(body, "/%s: must not be empty; without this member, all objects are selected",
                name);
}

/* --- the parameters of the query --- */

static bool read_texts(struct export_body *body)
{
    body->format = zt_text_from("safetensors");
    body->query.prefix = (struct zt_text){"", 0};
    return read_text(body, "format", &body->format) &&
           read_text(body, "prefix", &body->query.prefix);
}

static bool read_matches(struct export_body *body)
{
    const struct values values = values_of(body, "match");
    size_t bytes = 0;

    for (size_t i = 0; i < values.count; i++) {
        if (i == GLOB_SET_MAX)
            return fail(body, "/match: at most %d globs; objects takes a longer list of names",
                        GLOB_SET_MAX);
        if (!value_text(&values, i, &body->matches[i]) || !glob_is_valid(body->matches[i]))
            return fail_value(body, &values, i,
                              "must be a glob with every '[' closed by ']', of at most 1024 bytes");
        bytes += body->matches[i].length;
    }
    if (bytes > GLOB_SET_BYTES_MAX)
        return fail(body, "/match: at most %d bytes of globs; objects takes a longer list of names",
                    GLOB_SET_BYTES_MAX);
    assert(values.count <= GLOB_SET_MAX);
    body->query.matches = body->matches;
    body->query.match_count = values.count;
    return refuse_empty(body, "match");
}

static bool read_shard(struct export_body *body)
{
    struct zt_text shard;

    switch (json_member_text(body->json, "shard", &shard)) {
    case JSON_ABSENT:
        return !json_member_exists(body->json, "axis") || fail(body, "/axis: needs shard");
    case JSON_FOUND:
        if (cut_read(shard, &body->query.cut))
            return true;
        break;
    case JSON_OTHER:
        break;
    }
    return fail(body, "/shard: must be \"R/N\": part R, counted from 0, of N");
}

static bool rule_text(struct export_body *body, const struct values *values, size_t index,
                      struct zt_text *out_text)
{
    int64_t number;

    if (value_text(values, index, out_text))
        return true;
    if (!value_integer(values, index, &number))
        return false;
    snprintf(body->numbers[index], sizeof(body->numbers[index]), "%" PRId64, number);
    *out_text = zt_text_from(body->numbers[index]);
    return true;
}

static bool read_axes(struct export_body *body)
{
    const struct values values = values_of(body, "axis");
    size_t bytes = 0;

    for (size_t i = 0; i < values.count; i++) {
        struct zt_text text;

        if (i == GLOB_SET_MAX)
            return fail(body, "/axis: at most %d rules", GLOB_SET_MAX);
        if (!rule_text(body, &values, i, &text) || !axis_rule_read(text, &body->rules[i]))
            return fail_value(body, &values, i, "must be " AXIS_RULE_FORMS);
        bytes += text.length;
    }
    if (bytes > GLOB_SET_BYTES_MAX)
        return fail(body, "/axis: at most %d bytes of rules", GLOB_SET_BYTES_MAX);
    assert(values.count <= GLOB_SET_MAX);
    body->query.rules = body->rules;
    body->query.rule_count = values.count;
    return true;
}

static bool read_dtype(struct export_body *body)
{
    struct zt_text dtype;
    const enum json_member found = json_member_text(body->json, "dtype", &dtype);

    body->query.to_f32 = found == JSON_FOUND && zt_text_is(dtype, "f32");
    return found == JSON_ABSENT || body->query.to_f32 || fail(body, "/dtype: must be \"f32\"");
}

/* --- the lists --- */

/* Returns SIZE_MAX if it has failed. */
static size_t list_length(struct export_body *body, const char *name)
{
    const struct values values = values_of(body, name);

    if (values.count > 0 && values.list == NULL)
        (void)fail(body, "/%s: must be a list", name);
    else if (values.count > EXPORT_LIST_MAX)
        (void)fail(body, "/%s: at most %zu entries", name, EXPORT_LIST_MAX);
    else
        return values.count;
    return SIZE_MAX;
}

static bool read_names(struct export_body *body, struct zt_text *names, size_t count)
{
    const struct values values = values_of(body, "objects");

    for (size_t i = 0; i < count; i++)
        if (!value_text(&values, i, &names[i]))
            return fail_value(body, &values, i, "must be the name of an object");
    return true;
}

static bool read_digests(struct export_body *body, uint8_t (*have)[SHA256_BYTES], size_t count)
{
    const struct values values = values_of(body, "have");
    const size_t prefix = strlen(SHA256_PREFIX);

    for (size_t i = 0; i < count; i++) {
        struct zt_text text;
        const bool is_text = value_text(&values, i, &text);

        if (!is_text || text.length != prefix + (size_t)2 * SHA256_BYTES ||
            !zt_text_starts_with(text, zt_text_from(SHA256_PREFIX)) ||
            !zt_hex_read((struct zt_text){text.bytes + prefix, text.length - prefix}, have[i],
                         SHA256_BYTES))
            return fail_value(body, &values, i, "must be \"sha256:\" and 64 hexadecimal digits");
    }
    return true;
}

static bool make_lists(struct export_body *body, struct zt_text *names, size_t name_count,
                       uint8_t (*have)[SHA256_BYTES], size_t have_count)
{
    assert(name_count <= EXPORT_LIST_MAX && have_count <= EXPORT_LIST_MAX);
    if (names == NULL || have == NULL)
        return fail_memory(body);
    if (!read_names(body, names, name_count) || !read_digests(body, have, have_count))
        return false;
    if (name_count + have_count == 0)
        return true;
    body->query.lists =
        export_lists_new(names, name_count, (const uint8_t(*)[SHA256_BYTES])have, have_count);
    return body->query.lists != NULL || fail_memory(body);
}

static bool read_lists(struct export_body *body)
{
    const size_t name_count = list_length(body, "objects");
    const size_t have_count = name_count != SIZE_MAX ? list_length(body, "have") : SIZE_MAX;
    struct zt_text *names;
    uint8_t(*have)[SHA256_BYTES];
    bool is_read;

    if (have_count == SIZE_MAX || !refuse_empty(body, "objects"))
        return false;
    names = calloc(name_count + 1, sizeof(*names));
    have = calloc(have_count + 1, sizeof(*have));
    is_read = make_lists(body, names, name_count, have, have_count);
    free(names);
    free(have);
    return is_read;
}

static bool read_base(struct export_body *body)
{
    body->query.leaves_out =
        json_member_exists(body->json, "have") || json_member_exists(body->json, "base");
    if (!read_text(body, "base", &body->base))
        return false;
    return !json_member_exists(body->json, "base") || body->base.length > 0 ||
           fail(body, "/base: must name a revision");
}

/* --- the whole --- */

static bool read_members(struct export_body *body)
{
    static bool (*const readers[])(struct export_body *
                                   body) = {check_known, read_texts, read_matches, read_shard,
                                            read_axes,   read_dtype, read_base,    read_lists};

    for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++)
        if (!readers[i](body))
            return false;
    return true;
}

bool export_body_read(struct zt_text text, struct export_body *body)
{
    struct json_mistake mistake = {.line = 0};

    assert(body->json == NULL && body->query.lists == NULL && body->why[0] == '\0');
    if (!json_is_bounded(text, COMMAS_MAX, BRACKETS_MAX))
        return fail(body,
                    "the body has too many values: have and objects may have %zu entries each",
                    EXPORT_LIST_MAX);
    body->json = json_object_read(text, &mistake);
    if (body->json == NULL && mistake.line > 0)
        return fail(body, "the body must be JSON: line %d, column %d: %s", mistake.line,
                    mistake.column, mistake.why);
    if (body->json == NULL)
        return fail(body, "the body must be a JSON object");
    return read_members(body);
}

void export_body_clear(struct export_body *body)
{
    export_lists_release(body->query.lists);
    json_object_free(body->json);
    body->query.lists = NULL;
    body->json = NULL;
}
