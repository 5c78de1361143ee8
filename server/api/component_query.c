/* Reads the query of a component. A meaningless parameter is an error and never ignored: the client
 * would receive other bytes than it requested. */
#include "api/component.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/parameters.h"
#include "api/resolve.h"
#include "base/decimal.h"
#include "derived/passthrough.h"
#include "http/fields/negotiate.h"
#include "zt/digest.h"

#define NPY_TYPE "application/x-npy"
#define RAW_TYPE "application/octet-stream"
/* Raise this when the head made by zt_npy_head changes, so that ETags change too. */
#define NPY_REVISION 1
/* Raise this when the output of zt_widen_blocks changes for any type. */
#define WIDENING_REVISION 1

enum parameter { SLICE, SHARD, AXIS, FORMAT, REPRESENTATION, DTYPE, BASE, CODING, PARAMETERS };

static const char *const parameter_names[PARAMETERS] = {
    "slice", "shard", "axis", "format", "representation", "dtype", "base", "coding"};

struct query {
    struct zt_text values[PARAMETERS]; /* bytes NULL: absent */
};

enum outcome component_problem(struct request *request, const struct component_view *view,
                               enum problem problem, enum zt_status status, const char *message)
{
    struct zt_error error;

    zt_fail(&error, status, NULL, view->component->offset, "%s", message);
    zt_error_at(&error, zt_object_name(view->object), zt_component_name(view->component));
    return problem_reply_error_as(request, problem, &error);
}

enum outcome component_problem_too_large(struct request *request, const struct component_view *view)
{
    return component_problem(request, view, PROBLEM_UNSUPPORTED_ENCODING, ZT_LIMIT,
                             "its decoded size exceeds this server's limits.decoded_bytes; "
                             "?representation=stored gives the stored bytes");
}

/* --- the parameters --- */

static bool is_given(const struct query *query, enum parameter parameter)
{
    return query->values[parameter].bytes != NULL;
}

/* Returns false if it has replied. */
static bool read_parameters(struct request *request, struct query *out_query)
{
    struct zt_text again;

    for (unsigned i = 0; i < PARAMETERS; i++) {
        struct zt_text *value = &out_query->values[i];

        *value = (struct zt_text){NULL, 0};
        if (request_query(request, parameter_names[i], 0, value) &&
            request_query(request, parameter_names[i], 1, &again)) {
            problem_reply(request, PROBLEM_INVALID_REQUEST, "%s may be given only once",
                          parameter_names[i]);
            return false;
        }
    }
    return true;
}

static bool is_difference(const struct query *query)
{
    return is_given(query, BASE) || is_given(query, CODING);
}

/* Returns a description of an invalid parameter or combination of two, or NULL. */
static const char *find_conflict(const struct query *query)
{
    bool cut = is_given(query, SLICE) || is_given(query, SHARD) || is_given(query, AXIS);
    bool stored =
        is_given(query, REPRESENTATION) && zt_text_is(query->values[REPRESENTATION], "stored");

    if (is_given(query, REPRESENTATION) && !stored &&
        !zt_text_is(query->values[REPRESENTATION], "decoded"))
        return "representation must be stored or decoded";
    if (is_given(query, FORMAT) && !zt_text_is(query->values[FORMAT], "npy"))
        return "format must be npy";
    if (is_given(query, DTYPE) && !zt_text_is(query->values[DTYPE], "f32"))
        return "dtype must be f32";
    if (stored && (cut || is_given(query, FORMAT) || is_given(query, DTYPE)))
        return "representation=stored cannot be combined with slice, shard, format or dtype";
    if (is_difference(query) && (cut || is_given(query, FORMAT) || is_given(query, DTYPE) ||
                                 is_given(query, REPRESENTATION)))
        return "coding cannot be combined with slice, shard, format, representation or dtype";
    if (is_given(query, SLICE) && is_given(query, SHARD))
        return "slice and shard cannot be combined";
    return is_given(query, AXIS) && !is_given(query, SHARD) ? "axis needs shard" : NULL;
}

/* --- the tensor --- */

static bool has_length(const struct zt_component *component, uint64_t bytes)
{
    return component->decoded_length == ZT_LENGTH_UNKNOWN || component->decoded_length == bytes;
}

/* Returns true if the component is an array: its element size is known, and its length matches its
 * shape. */
static bool find_tensor(const struct request *request, struct component_view *view,
                        struct zt_slice_tensor *out_tensor)
{
    const struct zt_model *model = request->generation->model;
    const struct zt_component *component = view->component;
    uint64_t bytes;

    *out_tensor = (struct zt_slice_tensor){zt_object_shape(model, view->object), view->object->rank,
                                           (enum zt_dtype)component->dtype,
                                           (enum zt_logical)component->logical};
    if (view->object->layout != ZT_LAYOUT_DENSE ||
        !zt_text_is(zt_component_name(component), "data") ||
        zt_element_bytes(out_tensor->dtype, out_tensor->logical,
                         zt_object_elements(model, view->object), &bytes) != ZT_OK)
        return false;
    if (!has_length(component, bytes))
        return false;
    view->tensor_bytes = bytes;
    return true;
}

uint64_t component_view_widened_bytes(const struct request *request,
                                      const struct component_view *view)
{
    assert(view->widener != NULL);
    return zt_object_elements(request->generation->model, view->object) * sizeof(float);
}

/* Changes the tensor to f32 if requested, which also makes its length known. Returns false if it
 * has replied. */
static bool widen(struct request *request, struct component_view *view, const struct query *query,
                  struct zt_slice_tensor *tensor, bool *is_array)
{
    const struct zt_model *model = request->generation->model;
    const uint64_t elements = zt_object_elements(model, view->object);
    const struct zt_widener *widener;
    uint64_t bytes;

    if (!is_given(query, DTYPE))
        return true;
    widener = zt_widener_find(view->object, view->component);
    if (widener != NULL)
        view->tensor_bytes = (elements + zt_widener_elements(widener) - 1) /
                             zt_widener_elements(widener) * zt_widener_bytes(widener);
    if (widener == NULL || !has_length(view->component, view->tensor_bytes) ||
        zt_element_bytes(ZT_F32, ZT_LOGICAL_NONE, elements, &bytes) != ZT_OK) {
        component_problem(request, view, PROBLEM_NOT_REPRESENTABLE, ZT_ARGUMENT,
                          "only floats of at most 16 bits (except six-bit ones), f32, and GGUF's "
                          "quantized tensors can be read as f32");
        return false;
    }
    if (zt_widener_passes(widener))
        return true;
    tensor->dtype = ZT_F32;
    tensor->logical = ZT_LOGICAL_NONE;
    view->widener = widener;
    *is_array = true;
    return true;
}

/* Returns false if it has replied. */
static bool accept_verdict(struct request *request, const struct component_view *view,
                           enum zt_slice_verdict verdict, enum problem malformed,
                           const struct zt_error *error)
{
    const enum problem problems[] = {
        [ZT_SLICE_MALFORMED] = malformed,
        [ZT_SLICE_OUT_OF_RANGE] = PROBLEM_SLICE_OUT_OF_RANGE,
        [ZT_SLICE_NOT_ALIGNED] = PROBLEM_SLICE_NOT_BYTE_ALIGNED,
        [ZT_SLICE_NOT_DIVISIBLE] = PROBLEM_SHAPE_NOT_DIVISIBLE,
    };

    if (verdict == ZT_SLICE_FITS)
        return true;
    assert((size_t)verdict < sizeof(problems) / sizeof(problems[0]));
    component_problem(request, view, problems[verdict], ZT_ARGUMENT, error->message);
    return false;
}

static bool cut_slice(struct request *request, const struct component_view *view,
                      const struct zt_slice_tensor *tensor, struct zt_text text,
                      struct zt_slice *out_slice)
{
    struct zt_error error;
    enum zt_slice_verdict verdict = zt_slice_parse(tensor, text, out_slice, &error);

    return accept_verdict(request, view, verdict, PROBLEM_INVALID_SLICE, &error);
}

static bool cut_shard(struct request *request, const struct component_view *view,
                      const struct zt_slice_tensor *tensor, struct zt_slice *out_slice)
{
    struct zt_error error;
    struct zt_cut cut;
    enum zt_slice_verdict verdict;

    if (!parameter_shard(request, &cut))
        return false;
    verdict = zt_slice_shard(tensor, cut.part, cut.parts, cut.axis, out_slice, &error);
    return accept_verdict(request, view, verdict, PROBLEM_INVALID_REQUEST, &error);
}

/* Returns false if it has replied. */
static bool cut(struct request *request, struct component_view *view,
                const struct zt_slice_tensor *tensor, const struct query *query)
{
    struct zt_slice *slice;

    if (!is_given(query, SLICE) && !is_given(query, SHARD))
        return true;
    slice = request_allocate(request, sizeof(*slice));
    if (slice == NULL) {
        problem_reply_no_memory(request);
        return false;
    }
    assert(view->slice == NULL);
    view->slice = slice;
    return is_given(query, SLICE) ? cut_slice(request, view, tensor, query->values[SLICE], slice)
                                  : cut_shard(request, view, tensor, slice);
}

bool component_view_cut(struct request *request, struct component_view *view,
                        const struct zt_slice_tensor *tensor)
{
    struct query query;
    const char *conflict;

    if (!read_parameters(request, &query))
        return false;
    /* Other resources use these parameters with other meanings. */
    query.values[FORMAT] = query.values[REPRESENTATION] = (struct zt_text){NULL, 0};
    conflict = find_conflict(&query);
    if (conflict != NULL) {
        problem_reply(request, PROBLEM_INVALID_REQUEST, "%s", conflict);
        return false;
    }
    if (is_given(&query, SLICE) && query.values[SLICE].length == 0) {
        problem_reply(request, PROBLEM_INVALID_SLICE, "slice is empty");
        return false;
    }
    return cut(request, view, tensor, &query);
}

/* --- NPY --- */

/* Returns true if an Accept field prefers NPY to plain bytes. At equal weights, a named type wins
 * over a wildcard. *out_only: the field accepts only NPY. */
static bool accept_wants_npy(struct request *request, bool *out_only)
{
    const char *accept = request_header(request, "Accept");
    unsigned npy;
    unsigned raw;

    *out_only = false;
    if (accept == NULL)
        return false;
    npy = negotiate_media_type(accept, NPY_TYPE, true);
    raw = negotiate_media_type(accept, RAW_TYPE, false);
    *out_only = npy > 0 && raw == 0;
    return npy > raw ||
           (npy > 0 && npy == raw && negotiate_media_type(accept, RAW_TYPE, true) == 0);
}

/* NumPy has no bf16, and no floats of 8 bits or fewer. Sending integers instead would be silently
 * wrong. */
static bool has_npy_form(const struct component_view *view)
{
    const struct zt_component *component = view->component;

    if (view->widener != NULL)
        return true;
    if (view->tensor_bytes == ZT_LENGTH_UNKNOWN)
        return false;
    switch ((enum zt_logical)component->logical) {
    case ZT_LOGICAL_NONE:
        return component->dtype != ZT_BF16;
    case ZT_LOGICAL_BOOL:
    case ZT_LOGICAL_COMPLEX64:
    case ZT_LOGICAL_COMPLEX128:
        return true;
    default:
        return false;
    }
}

/* Returns true if the response would be different with dtype=f32, which was not requested. */
static bool is_widenable(const struct component_view *view)
{
    return view->widener == NULL && zt_widener_find(view->object, view->component) != NULL;
}

/* Decides by the parameter format if given, otherwise by Accept. Returns false if it has
 * replied. */
static bool choose_npy(struct request *request, struct component_view *view,
                       const struct query *query, bool *out_npy)
{
    bool possible = has_npy_form(view);
    bool only = false;

    *out_npy = is_given(query, FORMAT) || accept_wants_npy(request, &only);
    if (is_given(query, FORMAT))
        only = true;
    else
        view->varies_by_accept = true;
    if (*out_npy && !possible && only) {
        component_problem(request, view, PROBLEM_NOT_REPRESENTABLE, ZT_ARGUMENT,
                          view->object->layout != ZT_LAYOUT_DENSE && is_widenable(view)
                              ? "only dense tensors have an NPY form; dtype=f32 gives the "
                                "dequantized values, and without format the response is the bytes"
                              : "only dense tensors of types known to NumPy have an NPY form; "
                                "dtype=f32 widens bf16 and smaller floats exactly, and without "
                                "format the response is the bytes, which ml_dtypes can view");
        return false;
    }
    *out_npy = *out_npy && possible;
    return true;
}

/* Returns false if it has replied. */
static bool make_npy_head(struct request *request, struct component_view *view,
                          const struct zt_slice_tensor *tensor)
{
    struct zt_slice_tensor sent = *tensor;
    struct zt_error error;
    uint8_t *head;
    size_t length;
    uint8_t *kept;

    assert(view->npy_head == NULL);
    sent.shape = component_view_shape(request, view, &sent.rank);
    if (zt_npy_head(&sent, &head, &length, &error) != ZT_OK) {
        problem_reply_error_as(
            request, error.status == ZT_UNSUPPORTED ? PROBLEM_NOT_REPRESENTABLE : PROBLEM_INTERNAL,
            &error);
        return false;
    }
    kept = request_allocate(request, length);
    if (kept != NULL) {
        memcpy(kept, head, length);
        view->npy_head = kept;
        view->npy_head_length = length;
    }
    free(head);
    if (kept == NULL)
        problem_reply_no_memory(request);
    return kept != NULL;
}

/* --- the view --- */

/* Finds the requested bytes in the file, if a component with strides has them in order. Returns
 * false if it has replied. */
static bool gather(struct request *request, struct component_view *view)
{
    struct zt_slice found;
    struct zt_slice *kept;

    assert(view->gathered == NULL);
    /* Most components have no strides. */
    if (view->component->encoding != ZT_ENCODING_STRIDED ||
        !zt_slice_of_view(view->widener == NULL ? view->slice : NULL, view->component, &found))
        return true;
    kept = request_allocate(request, sizeof(*kept));
    if (kept == NULL) {
        problem_reply_no_memory(request);
        return false;
    }
    *kept = found;
    view->gathered = kept;
    return true;
}

/* Returns false if it has replied. */
static bool read_array(struct request *request, struct component_view *view,
                       const struct query *query)
{
    struct zt_slice_tensor tensor;
    bool is_array = find_tensor(request, view, &tensor);
    bool npy;

    /* Checked first, so that the error is the same whether the component is an array or not. */
    if (is_given(query, SLICE) && query->values[SLICE].length == 0) {
        problem_reply(request, PROBLEM_INVALID_SLICE, "slice is empty");
        return false;
    }
    if (!widen(request, view, query, &tensor, &is_array))
        return false;
    if (!is_array && (is_given(query, SLICE) || is_given(query, SHARD))) {
        component_problem(request, view, PROBLEM_NOT_REPRESENTABLE, ZT_ARGUMENT,
                          is_widenable(view)
                              ? "only dense tensors of known types can be sliced; dtype=f32 gives "
                                "the dequantized values, and slices of them"
                              : "only dense tensors of known types can be sliced");
        return false;
    }
    return cut(request, view, &tensor, query) && gather(request, view) &&
           choose_npy(request, view, query, &npy) &&
           (!npy || make_npy_head(request, view, &tensor));
}

struct component_view *component_view_read(struct request *request)
{
    const struct zt_object *object = object_resolve(request);
    const struct zt_component *component =
        object != NULL ? component_resolve(request, object) : NULL;
    struct query query;
    const char *conflict;
    struct component_view *view;
    bool stored;

    if (component == NULL || !read_parameters(request, &query))
        return NULL;
    conflict = find_conflict(&query);
    if (conflict != NULL) {
        problem_reply(request, PROBLEM_INVALID_REQUEST, "%s", conflict);
        return NULL;
    }
    view = request_allocate(request, sizeof(*view));
    if (view == NULL) {
        problem_reply_no_memory(request);
        return NULL;
    }
    stored = is_given(&query, REPRESENTATION) && zt_text_is(query.values[REPRESENTATION], "stored");
    *view =
        (struct component_view){.object = object,
                                .component = component,
                                .index = zt_component_index(request->generation->model, component),
                                .form = stored ? VIEW_STORED : VIEW_DECODED,
                                .tensor_bytes = ZT_LENGTH_UNKNOWN};
    if (stored)
        return view;
    if (is_difference(&query))
        return component_difference_read(request, view, query.values[BASE], query.values[CODING])
                   ? view
                   : NULL;
    if (!read_array(request, view, &query)) {
        request->reply.vary = view->varies_by_accept ? "Accept" : NULL;
        return NULL;
    }
    view->varies_by_coding = view->slice == NULL && view->npy_head == NULL &&
                             view->widener == NULL && passthrough_is_possible(component);
    return view;
}

const uint64_t *component_view_shape(const struct request *request,
                                     const struct component_view *view, unsigned *out_rank)
{
    *out_rank = view->slice != NULL ? view->slice->rank : view->object->rank;
    return view->slice != NULL ? view->slice->shape
                               : zt_object_shape(request->generation->model, view->object);
}

/* Hashes the selected elements, so that two spellings of a slice share an ETag. */
static void hash_slice(const struct zt_slice *slice, uint64_t out_words[2])
{
    uint64_t numbers[3 + 3 * ZT_SLICE_RANK_MAX];
    size_t count = 0;

    numbers[count++] = (uint64_t)slice->rank << 32 | slice->loop_count;
    numbers[count++] = slice->offset;
    numbers[count++] = slice->run_bytes;
    for (unsigned i = 0; i < slice->rank; i++)
        numbers[count++] = slice->shape[i];
    for (unsigned i = 0; i < slice->loop_count; i++) {
        numbers[count++] = slice->loops[i].count;
        numbers[count++] = slice->loops[i].stride_bytes;
    }
    assert(count <= sizeof(numbers) / sizeof(numbers[0]));
    zt_xxh3_128(numbers, count * sizeof(numbers[0]), out_words);
}

void component_view_tag(const struct component_view *view, char out_suffix[COMPONENT_TAG_SIZE])
{
    static const char *const forms[] = {
        [VIEW_DECODED] = "", [VIEW_STORED] = "-s", [VIEW_CODED] = "-zstd", [VIEW_DIFFERENCE] = ""};
    int length = (int)(zt_decimal_write(out_suffix, view->index) - out_suffix);

    strcpy(out_suffix + length, forms[view->form]);
    length += (int)strlen(forms[view->form]);
    if (view->slice != NULL) {
        uint64_t words[2];

        hash_slice(view->slice, words);
        length += snprintf(out_suffix + length, COMPONENT_TAG_SIZE - (size_t)length,
                           "-%016" PRIx64 "%016" PRIx64, words[0], words[1]);
    }
    if (view->difference != NULL)
        length += component_difference_tag(view->difference, out_suffix + length,
                                           COMPONENT_TAG_SIZE - (size_t)length);
    if (view->widener != NULL)
        length += snprintf(out_suffix + length, COMPONENT_TAG_SIZE - (size_t)length, "-f32.%d",
                           WIDENING_REVISION);
    assert(length > 0 && length < COMPONENT_TAG_SIZE);
    if (view->npy_head != NULL)
        snprintf(out_suffix + length, COMPONENT_TAG_SIZE - (size_t)length, "-npy%d", NPY_REVISION);
}
