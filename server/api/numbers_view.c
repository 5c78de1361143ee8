/* The common part of statistics and previews. */
#include "api/numbers_view.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "api/resolve.h"
#include "base/decimal.h"
#include "zt/component_view.h"
#include "zt/decode.h"
#include "zt/elements.h"

/* Limits if the settings have none. 64 GiB take about 150 processor seconds, for a response of 112
 * bytes, so clients without a grant get less. A byte of a small float or of a block takes up to
 * twenty times as long as a byte of f32, so for these the elements are limited too: 4 GiB of
 * bf16. */
#define ANONYMOUS_BYTES    ((uint64_t)4 << 30)
#define ANONYMOUS_ELEMENTS ((uint64_t)2 << 30)
#define KNOWN_BYTES        ((uint64_t)64 << 30)

/* Room for a handler's addition to a component's ETag. */
#define SUFFIX_SIZE (COMPONENT_TAG_SIZE + 128)

/* --- the request --- */

static bool fill_in(struct request *request, struct numbers_view *numbers,
                    const struct zt_object *object, const struct zt_component *component)
{
    const struct zt_model *model = request->generation->model;
    struct component_view *view = &numbers->view;

    *view = (struct component_view){.object = object,
                                    .component = component,
                                    .index = zt_component_index(model, component),
                                    .form = VIEW_DECODED,
                                    .tensor_bytes = ZT_LENGTH_UNKNOWN};
    if (component->encoding == ZT_ENCODING_UNKNOWN) {
        component_problem(request, view, PROBLEM_UNSUPPORTED_ENCODING, ZT_UNSUPPORTED,
                          "its encoding cannot be decoded here");
        return false;
    }
    if (!zt_elements_tensor(model, object, component, &numbers->tensor)) {
        component_problem(
            request, view, PROBLEM_NOT_REPRESENTABLE, ZT_ARGUMENT,
            "only dense tensors of real numbers (except six-bit floats), and quantized tensors "
            "that can be widened to f32, have statistics and previews");
        return false;
    }
    if (!component_view_cut(request, view, &numbers->tensor))
        return false;
    numbers->order.object = (uint32_t)(object - model->objects);
    assert(numbers->order.object < model->object_count && view->index < model->component_count);
    numbers->order.component = view->index;
    numbers->order.slice = view->slice;
    return true;
}

struct numbers_view *numbers_view_read(struct request *request, size_t size)
{
    const struct zt_object *object = object_resolve(request);
    const struct zt_component *component =
        object != NULL ? component_resolve(request, object) : NULL;
    struct numbers_view *numbers;

    assert(size >= sizeof(*numbers));
    if (component == NULL)
        return NULL;
    numbers = request_new_memory(request, size);
    if (numbers == NULL)
        return NULL;
    return fill_in(request, numbers, object, component) ? numbers : NULL;
}

static bool exceeds_limit(const struct request *request, const struct component_view *view,
                          uint64_t elements)
{
    const uint64_t limit =
        (uint64_t)config_number(&request->server->config->limits.statistics_bytes);
    const uint64_t bytes = zt_elements_bytes(view->object, view->component, view->slice, elements);

    if (limit > 0)
        return bytes > limit;
    if (request->grant != NULL)
        return bytes > KNOWN_BYTES;
    return bytes > ANONYMOUS_BYTES ||
           (elements > ANONYMOUS_ELEMENTS &&
            zt_widening_to_f32(request->generation->model, view->object).widener != NULL);
}

bool numbers_view_is_too_large(struct request *request, const struct numbers_view *numbers,
                               uint64_t elements)
{
    if (!exceeds_limit(request, &numbers->view, elements))
        return false;
    component_problem(request, &numbers->view, PROBLEM_TOO_LARGE, ZT_LIMIT,
                      "it has more elements than this server's limit for this client "
                      "(limits.statistics_bytes); request a slice");
    return true;
}

bool numbers_parameter(struct request *request, const char *name, uint32_t most,
                       uint32_t *out_value)
{
    struct zt_text text;
    struct zt_text again;
    uint64_t value;

    if (!request_query(request, name, 0, &text))
        return true;
    if (!zt_decimal_read(text, most, &value) || value == 0 ||
        request_query(request, name, 1, &again)) {
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "%s must be given once, as an integer from 1 to %u", name, most);
        return false;
    }
    *out_value = (uint32_t)value;
    return true;
}

/* --- the steps --- */

static enum outcome step_verify(struct request *request)
{
    struct numbers_view *numbers = request->context;

    return component_verify(request, &numbers->view);
}

static enum outcome step_compute(struct request *request)
{
    struct numbers_view *numbers = request->context;
    enum memo_answer given = MEMO_FAILED;
    struct zt_error error;

    if (numbers->entry == NULL) {
        numbers->entry =
            numbers_hold(request->server->numbers_memo, request->generation, &numbers->order);
        request_hold(request, numbers->entry, memo_release);
    }
    if (numbers->entry == NULL)
        zt_fail_memory(&error, "statistics");
    else
        given = numbers_ask(request->server, numbers->entry, request->generation, &numbers->order,
                            request_waiter(request), &error);
    if (given == MEMO_PENDING)
        return OUTCOME_WAITING;
    if (given == MEMO_FAILED)
        return component_problem_unreadable(request, &numbers->view, &error);
    return numbers->answer(request, numbers->entry);
}

void numbers_view_prepare(struct request *request, struct numbers_view *numbers, const char *suffix)
{
    struct representation *reply = &request->reply;
    char text[SUFFIX_SIZE];
    char etag[GENERATION_ETAG_SIZE + SUFFIX_SIZE];
    size_t length;

    component_view_tag(&numbers->view, text);
    length = strlen(text);
    snprintf(text + length, sizeof(text) - length, "-%s", suffix);
    generation_etag(request->generation, text, etag, sizeof(etag));
    reply->etag = request_copy(request, etag, strlen(etag));
    reply->last_modified = generation_modified(request->generation);
    reply->cache_control = "no-cache";
    representation_step(reply, "verify", step_verify);
    representation_step(reply, "compute", step_compute);
}
