/* Parses query parameters that several resources share. */
#include "api/parameters.h"

#include <assert.h>
#include <string.h>

#include "base/glob.h"
#include "http/exchange/problem.h"
#include "zt/utf8.h"

/* Longer than the name of any set. */
#define SET_SHOWN_MAX 40

bool parameter_once(struct request *request, const char *name)
{
    struct zt_text again;

    if (!request_query(request, name, 1, &again))
        return true;
    problem_reply(request, PROBLEM_INVALID_REQUEST, "%s must be given once", name);
    return false;
}

/* --- which objects --- */

bool parameter_prefix(struct request *request, struct zt_text *out_prefix)
{
    *out_prefix = (struct zt_text){"", 0};
    if (!request_query(request, "prefix", 0, out_prefix))
        return true;
    if (!parameter_once(request, "prefix"))
        return false;
    if (zt_utf8_valid(out_prefix->bytes, out_prefix->length))
        return true;
    problem_reply(request, PROBLEM_INVALID_REQUEST, "prefix must be UTF-8");
    return false;
}

bool parameter_matches(struct request *request, struct zt_text **out_globs, size_t *out_count)
{
    struct zt_text globs[GLOB_SET_MAX];
    struct zt_text glob;
    size_t count = 0;
    size_t bytes = 0;
    struct zt_text *kept;

    for (unsigned nth = 0; request_query(request, "match", nth, &glob); nth++) {
        bytes += glob.length;
        if (!glob_is_valid(glob) || count == GLOB_SET_MAX || bytes > GLOB_SET_BYTES_MAX) {
            problem_reply(
                request, PROBLEM_INVALID_REQUEST,
                "match must be a glob with every '[' closed by ']': at most %d of them, of at most "
                "%d bytes each and %d together",
                GLOB_SET_MAX, GLOB_MAX, GLOB_SET_BYTES_MAX);
            return false;
        }
        globs[count++] = glob;
    }
    assert(count <= GLOB_SET_MAX && bytes <= GLOB_SET_BYTES_MAX);
    kept = count > 0 ? request_allocate(request, count * sizeof(*kept)) : NULL;
    if (kept == NULL && count > 0) {
        problem_reply_no_memory(request);
        return false;
    }
    if (count > 0)
        memcpy(kept, globs, count * sizeof(*kept));
    *out_globs = kept;
    *out_count = count;
    return true;
}

/* --- switches --- */

static bool refuse_switch(struct request *request, const char *name)
{
    problem_reply(request, PROBLEM_INVALID_REQUEST, "%s must be true or false (1 or 0)", name);
    return false;
}

bool parameter_switch(struct request *request, const char *name, bool *out_value)
{
    struct zt_text value;

    *out_value = false;
    if (!request_query(request, name, 0, &value))
        return true;
    if (!parameter_once(request, name))
        return false;
    if (value.length == 0 || zt_text_is(value, "1") || zt_text_is(value, "true")) {
        *out_value = true;
        return true;
    }
    if (!zt_text_is(value, "0") && !zt_text_is(value, "false"))
        return refuse_switch(request, name);
    return true;
}

bool parameter_switch_off(struct request *request, const char *name, bool *out_value)
{
    struct zt_text value;

    *out_value = true;
    if (!request_query(request, name, 0, &value))
        return true;
    /* The name alone would mean the default. */
    return value.length > 0 ? parameter_switch(request, name, out_value)
                            : refuse_switch(request, name);
}

/* --- dtype=f32 --- */

bool parameter_dtype(struct request *request, bool *out_to_f32)
{
    struct zt_text value;
    struct zt_text again;

    *out_to_f32 = request_query(request, "dtype", 0, &value);
    if (!*out_to_f32 || (zt_text_is(value, "f32") && !request_query(request, "dtype", 1, &again)))
        return true;
    problem_reply(request, PROBLEM_INVALID_REQUEST, "dtype must be f32, given once");
    return false;
}

/* --- shard and axis --- */

/* Returns NULL, or a description of the error. */
static const char *take_shard(struct request *request, struct zt_cut *cut)
{
    struct zt_text shard;
    struct zt_text again;
    bool has_shard = request_query(request, "shard", 0, &shard);

    if (request_query(request, "shard", 1, &again))
        return "shard may be given only once";
    if (!has_shard)
        return request_query(request, "axis", 0, &again) ? "axis needs shard" : NULL;
    return cut_read(shard, cut) ? NULL : "shard must be R/N: part R, counted from 0, of N";
}

static const char *take_axis(struct request *request, struct zt_cut *cut)
{
    struct zt_text axis;
    struct zt_text again;

    if (request_query(request, "axis", 1, &again))
        return "axis may be given only once";
    return !request_query(request, "axis", 0, &axis) || axis_read(axis, &cut->axis)
               ? NULL
               : "axis must be an integer";
}

bool parameter_shard(struct request *request, struct zt_cut *out_cut)
{
    struct zt_cut cut = {0, 0, 0};
    const char *wrong = take_shard(request, &cut);

    if (wrong == NULL)
        wrong = take_axis(request, &cut);
    if (wrong != NULL) {
        problem_reply(request, PROBLEM_INVALID_REQUEST, "%s", wrong);
        return false;
    }
    *out_cut = cut;
    return true;
}

/* The message quotes an unknown set; other invalid rules may be too long to quote. */
static void refuse_rules(struct request *request, struct zt_text text)
{
    if (text.length > 0 && text.length <= SET_SHOWN_MAX && text.bytes[0] == '@')
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "axis=%.*s: unknown set; use " AXIS_SET_NAMES, (int)text.length, text.bytes);
    else
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "axis must be " AXIS_RULE_FORMS
                      ": at most %d rules, of at most %d bytes together",
                      GLOB_SET_MAX, GLOB_SET_BYTES_MAX);
}

/* Reads rules into an array of GLOB_SET_MAX, and returns their number; SIZE_MAX if it has
 * replied. */
static size_t read_rules(struct request *request, struct axis_rule *rules)
{
    struct zt_text text;
    size_t count = 0;
    size_t bytes = 0;

    for (unsigned nth = 0; request_query(request, "axis", nth, &text); nth++) {
        const bool fits = count < GLOB_SET_MAX && (bytes += text.length) <= GLOB_SET_BYTES_MAX;

        if (!fits || !axis_rule_read(text, &rules[count])) {
            refuse_rules(request, fits ? text : (struct zt_text){"", 0});
            return SIZE_MAX;
        }
        count++;
    }
    assert(count <= GLOB_SET_MAX && bytes <= GLOB_SET_BYTES_MAX);
    return count;
}

bool parameter_shard_by_rules(struct request *request, struct zt_cut *out_cut,
                              struct axis_rule **out_rules, size_t *out_count)
{
    struct axis_rule rules[GLOB_SET_MAX];
    struct zt_cut cut = {0, 0, 0};
    const char *wrong = take_shard(request, &cut);
    size_t count;

    if (wrong != NULL) {
        problem_reply(request, PROBLEM_INVALID_REQUEST, "%s", wrong);
        return false;
    }
    count = read_rules(request, rules);
    if (count == SIZE_MAX)
        return false;
    *out_rules = request_allocate(request, (count + 1) * sizeof(**out_rules));
    if (*out_rules == NULL) {
        problem_reply_no_memory(request);
        return false;
    }
    memcpy(*out_rules, rules, count * sizeof(*rules));
    *out_count = count;
    *out_cut = cut;
    return true;
}
