/* A picture of two axes of a component: as JSON, NPY or PNG. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/handlers.h"
#include "api/numbers_view.h"
#include "api/parameters.h"
#include "api/resolve.h"
#include "base/decimal.h"
#include "http/fields/negotiate.h"
#include "numbers/picture.h"
#include "numbers/statistics_json.h"
#include "zt/digest.h"

#define CELLS_DEFAULT 256
/* Raise this when any form changes, so that ETags change too. */
#define PREVIEW_REVISION 4
/* Maximum length of a number in the query. */
#define NUMBER_MAX 64

enum format { FORMAT_JSON, FORMAT_NPY, FORMAT_PNG };

struct preview_view {
    struct numbers_view numbers; /* first: request->context points to both */
    enum format format;
    enum picture_map map;
    bool has_low;
    bool has_high;
    double low;
    double high;
    bool encoded; /* a worker has filled in the members below */
    enum zt_status status;
    struct zt_error error;
    struct json json;
    uint8_t *bytes;
    size_t length;
};

/* --- the query --- */

/* Finds a parameter's value in a list of words; *out_place is unchanged if it is absent. Returns
 * false if it has replied. */
static bool read_word(struct request *request, const char *name, const char *const *words,
                      unsigned *out_place)
{
    struct zt_text text;
    struct zt_text again;

    if (!request_query(request, name, 0, &text))
        return true;
    for (unsigned i = 0; words[i] != NULL; i++)
        if (zt_text_is(text, words[i]) && !request_query(request, name, 1, &again)) {
            *out_place = i;
            return true;
        }
    problem_reply(request, PROBLEM_INVALID_REQUEST, "%s must be given once: %s, %s or %s", name,
                  words[0], words[1], words[2]);
    return false;
}

/* Returns true if it only has the characters of decimal numbers: strtod would also accept leading
 * spaces, and numbers in base 16. */
static bool is_plain_number(struct zt_text text)
{
    static const char allowed[] = "0123456789+-.eE";

    for (size_t i = 0; i < text.length; i++)
        if (memchr(allowed, text.bytes[i], sizeof(allowed) - 1) == NULL)
            return false;
    return text.length > 0;
}

static bool read_number(struct request *request, const char *name, bool *out_given,
                        double *out_number)
{
    struct zt_text text;
    char copy[NUMBER_MAX];
    char *end = copy;

    if (!parameter_once(request, name))
        return false;
    *out_given = request_query(request, name, 0, &text);
    if (!*out_given)
        return true;
    if (is_plain_number(text) && text.length < sizeof(copy)) {
        memcpy(copy, text.bytes, text.length);
        copy[text.length] = '\0';
        *out_number = strtod(copy, &end);
    }
    if (end == copy || end != copy + text.length || !isfinite(*out_number)) {
        problem_reply(request, PROBLEM_INVALID_REQUEST, "%s must be a finite decimal number", name);
        return false;
    }
    return true;
}

/* Reads index=0,-1. Returns the number of indices, or -1 if it has replied. */
static int read_index(struct request *request, int64_t out_index[ZT_SLICE_RANK_MAX])
{
    struct zt_text text;
    int count = 0;
    bool has_more = true;

    if (!parameter_once(request, "index"))
        return -1;
    if (!request_query(request, "index", 0, &text))
        return 0;
    for (; has_more; count++) {
        const bool is_negative = text.length > 0 && text.bytes[0] == '-';
        uint64_t number;

        text = (struct zt_text){text.bytes + is_negative, text.length - is_negative};
        if (count == ZT_SLICE_RANK_MAX || !zt_decimal_take(&text, &number) ||
            (text.length > 0 && text.bytes[0] != ',')) {
            problem_reply(request, PROBLEM_INVALID_REQUEST,
                          "index must be integers with commas between them");
            return -1;
        }
        /* Larger numbers are clipped: no tensor is that large. */
        number = number > INT64_MAX ? INT64_MAX : number;
        out_index[count] = is_negative ? -(int64_t)number : (int64_t)number;
        has_more = text.length > 0;
        text = (struct zt_text){text.bytes + has_more, text.length - has_more};
    }
    assert(count <= ZT_SLICE_RANK_MAX);
    return count;
}

/* Returns true if the client prefers PNG: it is named with at least the weight of JSON, or covered
 * by a wildcard with a higher one. Browsers may request pictures by a wildcard alone. */
static bool prefers_picture(const char *accept)
{
    unsigned json;

    if (accept == NULL)
        return false;
    json = negotiate_media_type(accept, "application/json", false);
    if (negotiate_media_type(accept, "image/png", false) > json)
        return true;
    return json > 0 && negotiate_media_type(accept, "image/png", true) == json;
}

/* Uses the parameter if given, otherwise Accept. */
static bool read_format(struct request *request, struct preview_view *preview)
{
    static const char *const words[] = {"json", "npy", "png", NULL};
    const char *accept = request_header(request, "Accept");
    unsigned format = FORMAT_JSON;
    struct zt_text text;

    if (!request_query(request, "format", 0, &text)) {
        request->reply.vary = "Accept";
        if (prefers_picture(accept))
            format = FORMAT_PNG;
    }
    if (!read_word(request, "format", words, &format))
        return false;
    preview->format = (enum format)format;
    return true;
}

static bool read_colours(struct request *request, struct preview_view *preview)
{
    static const char *const words[] = {"viridis", "gray", "diverging", NULL};
    unsigned map = PICTURE_VIRIDIS;

    if (!read_word(request, "map", words, &map) ||
        !read_number(request, "low", &preview->has_low, &preview->low) ||
        !read_number(request, "high", &preview->has_high, &preview->high))
        return false;
    preview->map = (enum picture_map)map;
    if (preview->has_low && preview->has_high && preview->low >= preview->high) {
        problem_reply(request, PROBLEM_INVALID_REQUEST, "low must be less than high");
        return false;
    }
    return true;
}

static bool read_plan(struct request *request, struct numbers_view *numbers)
{
    static const char *const words[] = {"mean", "absmax", "sample", NULL};
    unsigned reduction = ZT_REDUCE_MEAN;
    int64_t index[ZT_SLICE_RANK_MAX];
    uint32_t rows = CELLS_DEFAULT;
    uint32_t cols = CELLS_DEFAULT;
    struct zt_slice_tensor tensor = {.shape = NULL};
    int count;

    if (!numbers_parameter(request, "rows", ZT_PREVIEW_MAX, &rows) ||
        !numbers_parameter(request, "cols", ZT_PREVIEW_MAX, &cols) ||
        !read_word(request, "reduce", words, &reduction))
        return false;
    count = read_index(request, index);
    if (count < 0)
        return false;
    tensor.shape = component_view_shape(request, &numbers->view, &tensor.rank);
    if (!zt_preview_plan(&tensor, index, (unsigned)count, rows, cols, &numbers->order.preview)) {
        component_problem(request, &numbers->view, PROBLEM_SLICE_OUT_OF_RANGE, ZT_ARGUMENT,
                          "index must have one integer for each axis but the last two");
        return false;
    }
    numbers->order.preview.reduction = (enum zt_reduction)reduction;
    return true;
}

/* --- the forms --- */

/* Elements that a float represents exactly are shown with a float's digits. */
static bool fits_float(enum zt_dtype dtype)
{
    return zt_dtype_width(dtype) <= (zt_number_kind(dtype) == ZT_NUMBER_REAL ? 4U : 2U);
}

static void write_cell(struct preview_view *preview, double cell)
{
    if (fits_float(preview->numbers.tensor.dtype))
        number_write_float(&preview->json, (float)cell);
    else
        number_write(&preview->json, cell);
}

static void write_json(struct preview_view *preview, const double *cells)
{
    const struct zt_preview *plan = &preview->numbers.order.preview;
    struct json *json = &preview->json;
    double low = NAN;
    double high = NAN;

    picture_range(cells, (size_t)plan->out_rows * plan->out_cols, &low, &high);
    json_object_begin(json);
    json_uint_member(json, "rows", plan->out_rows);
    json_uint_member(json, "cols", plan->out_cols);
    json_array_member(json, "block");
    json_uint(json, plan->block_rows);
    json_uint(json, plan->block_cols);
    json_array_end(json);
    json_key_string(json, "low");
    write_cell(preview, low);
    json_key_string(json, "high");
    write_cell(preview, high);
    json_array_member(json, "values");
    for (uint32_t row = 0; row < plan->out_rows; row++) {
        json_array_begin(json);
        for (uint32_t col = 0; col < plan->out_cols; col++)
            write_cell(preview, *cells++);
        json_array_end(json);
    }
    json_array_end(json);
    json_object_end(json);
}

/* Chooses the requested range, or the range of the cells. A diverging range extends as far below
 * zero as above. */
static void choose_range(const struct preview_view *preview, struct picture *picture)
{
    double low = 0;
    double high = 0;

    assert(!preview->has_low || !preview->has_high || preview->low < preview->high);
    picture_range(picture->cells, (size_t)picture->rows * picture->cols, &low, &high);
    picture->low = preview->has_low ? preview->low : low;
    picture->high = preview->has_high ? preview->high : high;
    if (preview->map == PICTURE_DIVERGING) {
        picture->high = fmax(fabs(picture->low), fabs(picture->high));
        picture->low = -picture->high;
    }
}

static enum zt_status draw(struct preview_view *preview, const double *cells)
{
    const struct zt_preview *plan = &preview->numbers.order.preview;
    struct picture picture = {
        .cells = cells, .rows = plan->out_rows, .cols = plan->out_cols, .map = preview->map};

    choose_range(preview, &picture);
    return picture_encode(&picture, &preview->bytes, &preview->length, &preview->error);
}

static enum zt_status write_npy(struct preview_view *preview, const double *cells)
{
    const struct zt_preview *plan = &preview->numbers.order.preview;
    const size_t count = (size_t)plan->out_rows * plan->out_cols;
    const uint64_t shape[] = {plan->out_rows, plan->out_cols};
    const struct zt_slice_tensor tensor = {shape, 2, ZT_F32, ZT_LOGICAL_NONE};
    enum zt_status status =
        zt_npy_head(&tensor, &preview->bytes, &preview->length, &preview->error);
    uint8_t *bytes;

    if (status != ZT_OK)
        return status;
    bytes = realloc(preview->bytes, preview->length + count * sizeof(float));
    if (bytes == NULL)
        return zt_fail_memory(&preview->error, "a preview");
    preview->bytes = bytes;
    for (size_t i = 0; i < count; i++) {
        const float cell = (float)cells[i];

        memcpy(bytes + preview->length, &cell, sizeof(cell));
        preview->length += sizeof(cell);
    }
    return ZT_OK;
}

static void encode(struct request *request)
{
    struct preview_view *preview = request->context;
    const double *cells = preview->numbers.entry->bytes;

    switch (preview->format) {
    case FORMAT_JSON:
        write_json(preview, cells);
        break;
    case FORMAT_NPY:
        preview->status = write_npy(preview, cells);
        break;
    case FORMAT_PNG:
        preview->status = draw(preview, cells);
        break;
    }
}

static enum outcome answer(struct request *request, const struct numbers_entry *entry)
{
    struct preview_view *preview = request->context;

    (void)entry;
    if (!preview->encoded) {
        preview->encoded = true;
        return request_work_long(request, encode);
    }
    if (preview->status != ZT_OK || preview->json.failed)
        return problem_reply_no_memory(request);
    if (preview->format == FORMAT_JSON)
        representation_memory(&request->reply, preview->json.text, preview->json.length);
    else
        representation_memory(&request->reply, preview->bytes, preview->length);
    return OUTCOME_READY;
}

/* --- the handler --- */

static void free_encoded(void *thing)
{
    struct preview_view *preview = thing;

    json_free(&preview->json);
    free(preview->bytes);
}

/* Describes this picture, to distinguish its ETag from others of the same elements. Returns NULL if
 * out of memory. */
static const char *describe(struct request *request, const struct preview_view *preview)
{
    const struct zt_preview *plan = &preview->numbers.order.preview;
    const uint64_t numbers[] = {
        plan->reduction, plan->out_rows,  plan->out_cols, plan->block_rows, plan->block_cols,
        plan->first,     preview->format, preview->map,   preview->has_low, preview->has_high,
    };
    const double range[] = {preview->has_low ? preview->low : 0,
                            preview->has_high ? preview->high : 0};
    uint8_t bytes[sizeof(numbers) + sizeof(range)];
    uint64_t words[2];

    memcpy(bytes, numbers, sizeof(numbers));
    memcpy(bytes + sizeof(numbers), range, sizeof(range));
    zt_xxh3_128(bytes, sizeof(bytes), words);
    return request_print(request, "preview%d-%016llx%016llx", PREVIEW_REVISION,
                         (unsigned long long)words[0], (unsigned long long)words[1]);
}

static bool read_query(struct request *request, struct preview_view *preview)
{
    const struct zt_preview *plan = &preview->numbers.order.preview;

    if (!read_format(request, preview) || !read_colours(request, preview) ||
        !read_plan(request, &preview->numbers) ||
        numbers_view_is_too_large(request, &preview->numbers, plan->count))
        return false;
    if (preview->format != FORMAT_PNG || plan->out_rows > 0)
        return true;
    component_problem(request, &preview->numbers.view, PROBLEM_NOT_REPRESENTABLE, ZT_ARGUMENT,
                      "an empty tensor cannot be shown as PNG");
    return false;
}

enum outcome preview_get(struct request *request)
{
    static const char *const types[] = {"application/json", "application/x-npy", "image/png"};
    enum outcome outcome;
    struct preview_view *preview;
    const char *suffix;

    if (!model_resolve(request, &outcome))
        return outcome;
    preview = (struct preview_view *)numbers_view_read(request, sizeof(*preview));
    if (preview == NULL || !read_query(request, preview))
        return OUTCOME_READY;
    suffix = describe(request, preview);
    if (suffix == NULL)
        return problem_reply_no_memory(request);
    request->context = preview;
    json_init(&preview->json, false);
    request_hold(request, preview, free_encoded);
    preview->numbers.order.bytes =
        preview->numbers.order.preview.count * zt_dtype_width(preview->numbers.tensor.dtype);
    preview->numbers.answer = answer;
    request->reply.media_type = types[preview->format];
    numbers_view_prepare(request, &preview->numbers, suffix);
    return OUTCOME_READY;
}
