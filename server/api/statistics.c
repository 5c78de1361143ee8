/* Sends statistics of the elements of a component, or of a slice. */
#include "zt/statistics.h"
#include "api/handlers.h"
#include "api/numbers_view.h"
#include "api/resolve.h"
#include "numbers/component_numbers.h"

#define BINS_DEFAULT 64
/* Raise this when the document changes, so that ETags change too. */
#define STATISTICS_REVISION 3

static enum outcome send(struct request *request, const struct numbers_entry *entry)
{
    representation_memory(&request->reply, entry->bytes, entry->length);
    return OUTCOME_READY;
}

static uint64_t element_count(const struct request *request, const struct numbers_view *numbers)
{
    const struct zt_slice *slice = numbers->view.slice;

    return slice != NULL ? slice->length / zt_dtype_width(numbers->tensor.dtype)
                         : zt_object_elements(request->generation->model, numbers->view.object);
}

enum outcome statistics_get(struct request *request)
{
    enum outcome outcome;
    struct numbers_view *numbers;
    uint32_t bins = BINS_DEFAULT;
    uint64_t elements;

    if (!model_resolve(request, &outcome))
        return outcome;
    numbers = numbers_view_read(request, sizeof(*numbers));
    if (numbers == NULL || !numbers_parameter(request, "bins", ZT_BINS_MAX, &bins))
        return OUTCOME_READY;
    elements = element_count(request, numbers);
    if (numbers_view_is_too_large(request, numbers, elements))
        return OUTCOME_READY;
    request->context = numbers;
    numbers->order.bins = bins;
    numbers->order.bytes = elements * zt_dtype_width(numbers->tensor.dtype);
    numbers->answer = send;
    request->reply.media_type = "application/json";
    numbers_view_prepare(request, numbers,
                         request_print(request, "statistics%d-%u", STATISTICS_REVISION, bins));
    /* Without a length, the connection would be closed after a 304. */
    if (request_header(request, "If-None-Match") != NULL ||
        request_header(request, "If-Modified-Since") != NULL)
        request->reply.expected_length =
            numbers_length(request->server->numbers_memo, request->generation, &numbers->order);
    return OUTCOME_READY;
}
