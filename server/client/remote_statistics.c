#include "client/remote_statistics.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/api_address.h"
#include "client/model_address.h"
#include "client/model_source.h"
#include "http/fields/uri.h"
#include "input/json_read.h"

/* A thousand bins take some ten thousand bytes. */
#define ANSWER_MOST ((size_t)1 << 20)

void remote_statistics_begin(struct remote_statistics *remote, const char *path)
{
    struct zt_error error;

    remote->client = NULL;
    atomic_store(&remote->is_over, false);
    if (!web_address_is_meant(path) || client_place_read(path, &remote->place, &error) != ZT_OK ||
        api_address_read(&remote->place.address).kind == API_FILE ||
        model_address_of_api(&remote->place.address, NULL, remote->model_path, &error) != ZT_OK ||
        model_source_client(&remote->client, &error) != ZT_OK)
        remote->client = NULL;
}

/* --- the request --- */

static enum zt_status place_tensor(const struct remote_statistics *remote,
                                   const struct remote_tensor *tensor,
                                   struct client_place *out_place, struct zt_error *error)
{
    char query[64];
    struct href href;
    enum zt_status status;

    snprintf(query, sizeof(query), "/statistics?bins=%u", tensor->bins);
    href_init(&href);
    href_plain(&href, remote->model_path);
    href_plain(&href, "/objects/");
    href_segment(&href, zt_object_name(tensor->object));
    href_plain(&href, "/");
    href_segment(&href, zt_component_name(tensor->component));
    href_plain(&href, query);
    status = href.failed ? zt_fail_memory(error, "a URL")
                         : client_place_beside(&remote->place, href.text, out_place, error);
    href_free(&href);
    return status;
}

/* *out_text is the document. */
static enum zt_status ask(struct remote_statistics *remote, const struct remote_tensor *tensor,
                          char **out_text, struct zt_error *error)
{
    struct remote_exchange exchange;
    struct client_place place;
    enum zt_status status = place_tensor(remote, tensor, &place, error);

    if (status != ZT_OK)
        return status;
    client_prepare(remote->client, &place, &exchange);
    exchange.body_most = ANSWER_MOST;
    status = client_ask(remote->client, &place, &exchange, error);
    if (status == ZT_OK && exchange.head.status != 200)
        status = client_refusal(&exchange, error);
    if (status == ZT_OK) {
        *out_text = strdup(exchange.answer != NULL ? exchange.answer : "");
        status = *out_text != NULL ? ZT_OK : zt_fail_memory(error, "statistics");
    }
    remote_exchange_free(&exchange);
    return status;
}

/* --- the document --- */

static bool read_number(const struct json_t *answer, const char *name, enum zt_number_kind kind,
                        union zt_number *out_number)
{
    switch (kind) {
    case ZT_NUMBER_INTEGER:
        return json_member_integer(answer, name, &out_number->integer) == JSON_FOUND;
    case ZT_NUMBER_NATURAL:
        return json_member_whole(answer, name, &out_number->natural) == JSON_FOUND;
    default:
        return json_member_real(answer, name, &out_number->real) == JSON_FOUND;
    }
}

/* Moments that overflow are null, which is not a number here too. */
static void read_moments(const struct json_t *answer, struct zt_tally *tally)
{
    double mean = (double)NAN;
    double deviation = (double)NAN;

    (void)json_member_real(answer, "mean", &mean);
    (void)json_member_real(answer, "std", &deviation);
    /* In units in which the square of the deviation does not overflow. */
    (void)frexp(fmax(fabs(mean), fabs(deviation)), &tally->exponent);
    tally->mean = ldexp(mean, -tally->exponent);
    deviation = ldexp(deviation, -tally->exponent);
    tally->squares = deviation * deviation * (double)tally->finite;
}

static bool read_tally(const struct json_t *answer, enum zt_number_kind kind,
                       struct zt_tally *out_tally)
{
    struct zt_tally tally = {.finite = 0};

    if (json_member_whole(answer, "finite", &tally.finite) != JSON_FOUND ||
        json_member_whole(answer, "zero", &tally.zero) != JSON_FOUND)
        return false;
    if (tally.finite > 0 && (!read_number(answer, "min", kind, &tally.min) ||
                             !read_number(answer, "max", kind, &tally.max)))
        return false;
    if (tally.finite > 0)
        read_moments(answer, &tally);
    *out_tally = tally;
    return true;
}

static bool read_histogram(const struct json_t *answer, unsigned bins,
                           struct statistics *statistics)
{
    const struct json_t *histogram = json_member_object(answer, "histogram");
    const struct json_t *counts = json_member_list(histogram, "counts");

    assert(bins <= ZT_BINS_MAX);
    statistics->has_histogram = histogram != NULL;
    if (histogram == NULL)
        return json_member_is_null(answer, "histogram");
    statistics->axis.bins = bins;
    for (unsigned i = 0; i < bins; i++)
        if (!json_list_whole(counts, i, &statistics->counts[i]))
            return false;
    return json_list_length(counts) == bins;
}

/* Returns false for a document that is not of this tensor. */
static bool read_document(const char *text, const struct remote_tensor *tensor,
                          struct statistics *statistics)
{
    struct json_t *answer = json_object_read(zt_text_from(text), NULL);
    struct zt_slice_tensor elements;
    bool is_read;

    memset(statistics, 0, sizeof(*statistics));
    is_read = answer != NULL &&
              zt_elements_tensor(tensor->model, tensor->object, tensor->component, &elements) &&
              json_member_whole(answer, "count", &statistics->count) == JSON_FOUND &&
              statistics->count == zt_object_elements(tensor->model, tensor->object);
    if (is_read)
        statistics->kind = zt_number_kind(elements.dtype);
    is_read = is_read && read_tally(answer, statistics->kind, &statistics->tally) &&
              read_histogram(answer, tensor->bins, statistics);
    json_object_free(answer);
    return is_read;
}

bool remote_statistics_ask(struct remote_statistics *remote, const struct remote_tensor *tensor,
                           struct statistics *out_statistics, char **out_text,
                           struct zt_error *error)
{
    char *text = NULL;

    assert(tensor->component != NULL);
    zt_error_clear(error);
    if (remote->client == NULL || atomic_load(&remote->is_over))
        return false;
    if (ask(remote, tensor, &text, error) == ZT_OK) {
        if (read_document(text, tensor, out_statistics)) {
            *out_text = text;
            return true;
        }
        zt_fail(error, ZT_INVALID, NULL, ZT_NO_OFFSET,
                "the server's response is not the tensor's statistics");
        free(text);
    }
    /* One line is enough about a server without statistics. */
    if ((error->os_error == ENOENT || error->status == ZT_INVALID) &&
        atomic_exchange(&remote->is_over, true))
        zt_error_clear(error);
    return false;
}
