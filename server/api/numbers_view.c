/* What statistics and previews have in common. */
#include "api/numbers_view.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "api/resolve.h"
#include "zt/decode.h"
#include "zt/elements.h"

/* Room for what a handler adds to a component's tag. */
#define SUFFIX_SIZE (COMPONENT_TAG_SIZE + 128)

/* --- what is asked for --- */

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
        component_problem(request, view, PROBLEM_NOT_REPRESENTABLE, ZT_ARGUMENT,
                          "only dense tensors of real numbers, except floats of six bits, and "
                          "quantized ones that can be widened to f32, have statistics and "
                          "previews");
        return false;
    }
    if (!component_view_cut(request, view, &numbers->tensor))
        return false;
    numbers->order.object = (uint32_t)(object - model->objects);
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
    numbers = request_allocate(request, size);
    if (numbers == NULL) {
        problem_reply_no_memory(request);
        return NULL;
    }
    memset(numbers, 0, size);
    return fill_in(request, numbers, object, component) ? numbers : NULL;
}

bool numbers_view_is_too_large(struct request *request, const struct numbers_view *numbers,
                               uint64_t elements)
{
    const uint64_t limit =
        (uint64_t)config_number(&request->server->config->limits.statistics_bytes);

    if (zt_elements_bytes(numbers->view.object, numbers->view.component, numbers->view.slice,
                          elements) <= limit)
        return false;
    component_problem(request, &numbers->view, PROBLEM_TOO_LARGE, ZT_LIMIT,
                      "its elements exceed limits.statistics_bytes of this server; a slice may "
                      "not");
    return true;
}

bool numbers_parameter(struct request *request, const char *name, uint32_t most,
                       uint32_t *out_value)
{
    struct zt_text text;
    struct zt_text again;
    uint64_t value = 0;
    size_t at = 0;

    if (!request_query(request, name, 0, &text))
        return true;
    for (; at < text.length && value <= most && text.bytes[at] >= '0' && text.bytes[at] <= '9';
         at++)
        value = value * 10 + (uint64_t)(text.bytes[at] - '0');
    if (at < text.length || value == 0 || value > most || request_query(request, name, 1, &again)) {
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
    struct finding *finding;
    struct zt_error error;

    if (numbers->finding == NULL) {
        switch (finding_ask(request->server->findings, request->generation, &numbers->order,
                            request_waiter(request), &finding, &error)) {
        case FINDING_PENDING:
            return OUTCOME_WAITING;
        case FINDING_FAILED:
            return component_problem_unreadable(request, &numbers->view, &error);
        case FINDING_READY:
            break;
        }
        request_hold(request, finding, finding_release);
        numbers->finding = finding;
    }
    return numbers->answer(request, numbers->finding);
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
