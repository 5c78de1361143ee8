/* Redirects are followed here and not by libcurl, which would send the range and the conditions to
 * any target, and would not report where it was redirected. */
#include "client/client.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "input/json_read.h"
#include "remote/retry.h"

#define REDIRECTS_MOST 10
/* Maximum time of an exchange that makes progress; without progress it ends after stall_s. */
#define WEEK_MS (UINT64_C(7) * 24 * 3600 * 1000)
/* Maximum length shown of a problem's detail. */
#define DETAIL_SHOWN 160
#define TOKEN_MOST   ((size_t)16384)

struct client {
    struct remote *remote;
    char *authorization; /* "Bearer …"; NULL: none */
    unsigned stall_s;
    bool is_patient;
    atomic_bool has_answered;
};

/* --- the token --- */

void client_options_free(struct client_options *options)
{
    free(options->token);
}

/* Reads the first line, without surrounding spaces. */
static enum zt_status read_token(const char *path, char **out_token, struct zt_error *error)
{
    FILE *file = fopen(path, "re");
    char *line = malloc(TOKEN_MOST);
    size_t start;

    if (file == NULL || line == NULL) {
        const int number = errno;

        free(line);
        if (file != NULL)
            fclose(file);
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the token cannot be read from %s: %s",
                       path, strerrordesc_np(number));
    }
    if (fgets(line, (int)TOKEN_MOST, file) == NULL)
        line[0] = '\0';
    fclose(file);
    start = strspn(line, " \t");
    line[start + strcspn(line + start, " \t\r\n")] = '\0';
    memmove(line, line + start, strlen(line + start) + 1);
    *out_token = line;
    return line[0] != '\0' ? ZT_OK
                           : zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                                     "%s has no token in its first line", path);
}

enum zt_status client_options_finish(struct client_options *options, struct zt_error *error)
{
    const char *token = getenv("ZTSERVE_TOKEN");

    if (options->token_file != NULL)
        return read_token(options->token_file, &options->token, error);
    if (token == NULL || token[0] == '\0')
        return ZT_OK;
    free(options->token);
    options->token = strdup(token);
    return options->token != NULL ? ZT_OK : zt_fail_memory(error, "a token");
}

/* --- beginning and end --- */

static bool is_token(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

static enum zt_status fill(struct client *client, const struct client_options *options,
                           struct zt_error *error)
{
    const struct remote_options remote = {
        .ca_file = options->ca_file, .system_proxy = true, .connections = options->connections};

    client->stall_s = options->stall_s;
    client->is_patient = options->is_patient;
    client->has_answered = options->has_answered;
    if (options->token != NULL && !is_token(options->token))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                       "the token has characters that tokens cannot have");
    if (options->token != NULL &&
        asprintf(&client->authorization, "Bearer %s", options->token) < 0) {
        client->authorization = NULL;
        return zt_fail_memory(error, "a token");
    }
    return remote_start(&remote, &client->remote, error);
}

enum zt_status client_open(const struct client_options *options, struct client **out_client,
                           struct zt_error *error)
{
    struct client *client = calloc(1, sizeof(*client));
    enum zt_status status;

    assert(options->stall_s > 0);
    if (client == NULL)
        return zt_fail_memory(error, "connections");
    status = fill(client, options, error);
    if (status != ZT_OK) {
        client_close(client);
        return status;
    }
    *out_client = client;
    return ZT_OK;
}

void client_interrupt(struct client *client)
{
    remote_interrupt(client->remote);
}

void client_close(struct client *client)
{
    if (client == NULL)
        return;
    remote_stop(client->remote);
    free(client->authorization);
    free(client);
}

/* --- places --- */

enum zt_status client_place_read(const char *url, struct client_place *out_place,
                                 struct zt_error *error)
{
    if (!web_address_read(url, &out_place->address))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                       "this is not an http or https URL (user names in it are not supported)");
    out_place->is_trusted = true;
    return ZT_OK;
}

enum zt_status client_place_beside(const struct client_place *place, const char *target,
                                   struct client_place *out_place, struct zt_error *error)
{
    struct client_place beside = *place;

    if (target[0] != '/' || !web_address_follow(&place->address, target, &beside.address) ||
        strcmp(beside.address.origin, place->address.origin) != 0)
        return zt_fail(error, ZT_INVALID, NULL, ZT_NO_OFFSET,
                       "the server returned an invalid location");
    *out_place = beside;
    return ZT_OK;
}

/* --- requests --- */

void client_prepare(struct client *client, const struct client_place *place,
                    struct remote_exchange *exchange)
{
    remote_exchange_init(exchange);
    exchange->method = "GET";
    exchange->origin = place->address.origin;
    exchange->path = place->address.target;
    exchange->stall_s = client->stall_s;
    exchange->time_ms = WEEK_MS;
    exchange->tries = CLIENT_TRIES;
    if (client->is_patient) {
        exchange->obeys_retry_after = true;
        exchange->tries_busy = CLIENT_FAILURES_MOST + 1;
        exchange->tries_unreachable = client->has_answered ? CLIENT_FAILURES_MOST + 1 : 0;
    }
    if (place->is_trusted && client->authorization != NULL)
        exchange->fields[exchange->field_count++] =
            (struct remote_field){"authorization", client->authorization};
}

void client_limit_tries(struct remote_exchange *exchange, unsigned tries)
{
    exchange->tries = tries;
    exchange->tries_busy = 0;
    exchange->tries_unreachable = 0;
}

void client_begin(struct client *client, struct remote_exchange *exchange)
{
    remote_begin(client->remote, exchange);
}

static bool is_redirect(const struct remote_exchange *exchange)
{
    const unsigned status = exchange->head.status;

    return (status >= 301 && status <= 303) || status == 307 || status == 308;
}

static void drop_token(struct remote_exchange *exchange)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < exchange->field_count; i++)
        if (strcmp(exchange->fields[i].name, "authorization") != 0)
            exchange->fields[kept++] = exchange->fields[i];
    exchange->field_count = kept;
}

/* Redirects the exchange to the location in the response. */
static enum zt_status follow(struct client_place *place, struct remote_exchange *exchange,
                             struct zt_error *error)
{
    struct web_address next;

    if (strcmp(exchange->method, "GET") != 0 && strcmp(exchange->method, "HEAD") != 0)
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                       "the server redirects uploads: use the final URL");
    if (!web_address_follow(&place->address, exchange->head.location, &next))
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                       "the server redirects to an invalid URL");
    if (web_address_is_tls(&place->address) && !web_address_is_tls(&next))
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                       "the server redirects from https to http");
    if (strcmp(next.origin, place->address.origin) != 0) {
        place->is_trusted = false;
        drop_token(exchange);
    }
    place->address = next;
    return ZT_OK;
}

enum zt_status client_ask(struct client *client, struct client_place *place,
                          struct remote_exchange *exchange, struct zt_error *error)
{
    for (unsigned redirects = 0; redirects <= REDIRECTS_MOST; redirects++) {
        enum zt_status status = remote_run(client->remote, exchange);

        if (status != ZT_OK)
            return client_failure(exchange, error);
        client->has_answered = true;
        if (!is_redirect(exchange))
            return ZT_OK;
        status = follow(place, exchange, error);
        if (status != ZT_OK)
            return status;
        remote_exchange_free(exchange);
    }
    return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                   "the server redirects in circles, or more than %d times", REDIRECTS_MOST);
}

/* --- failures and refusals --- */

static int shown(struct zt_text text)
{
    return (int)(text.length < DETAIL_SHOWN ? text.length : DETAIL_SHOWN);
}

/* Returns the detail of a problem document (RFC 9457), for the end of a message, if the response is
 * one. */
static char *detail_of(const struct remote_exchange *exchange)
{
    const struct zt_text answer = {exchange->answer, exchange->answer_length};
    struct json_t *problem = exchange->answer != NULL ? json_object_read(answer, NULL) : NULL;
    struct zt_text object = {"", 0};
    struct zt_text detail;
    char *text = NULL;

    if (problem != NULL && json_member_text(problem, "detail", &detail) == JSON_FOUND &&
        detail.length > 0) {
        (void)json_member_text(problem, "object", &object);
        if (asprintf(&text, "%.*s%s%.*s", shown(detail), detail.bytes,
                     object.length > 0 ? "; object " : "", shown(object), object.bytes) < 0)
            text = NULL;
    }
    json_object_free(problem);
    return text;
}

static const char *advice_for(enum remote_failure failure)
{
    if (failure == REMOTE_FAILURE_CERTIFICATE)
        return "; use --ca FILE to trust another authority";
    if (failure == REMOTE_FAILURE_TLS)
        return "; is it an https server, or should the URL begin with http:?";
    return "";
}

enum zt_status client_failure(const struct remote_exchange *exchange, struct zt_error *error)
{
    char *detail = exchange->failure == REMOTE_FAILURE_BUSY ? detail_of(exchange) : NULL;
    const char *advice = advice_for(exchange->failure);

    *error = exchange->error;
    if (detail != NULL || advice[0] != '\0')
        zt_fail(error, exchange->status, NULL, ZT_NO_OFFSET, "%s%s%s%s", exchange->error.message,
                detail != NULL ? ": " : "", detail != NULL ? detail : "", advice);
    free(detail);
    return exchange->status;
}

unsigned client_failures_most(const struct remote_exchange *exchange)
{
    return exchange->failure == REMOTE_FAILURE_BUSY ||
                   remote_is_unreachable(exchange->failure, exchange)
               ? CLIENT_FAILURES_MOST
               : CLIENT_TRIES;
}

uint64_t client_pause_ms(const struct remote_exchange *exchange, unsigned failures, uint64_t *seed)
{
    const uint64_t pause_ms = retry_pause_ms(failures, seed);
    const uint64_t asked_ms =
        retry_after_ms(exchange->head.retry_after, clock_wall_ns() / CLOCK_NS_PER_S);

    return asked_ms > pause_ms ? asked_ms : pause_ms;
}

static bool has_token(const struct remote_exchange *exchange)
{
    for (unsigned i = 0; i < exchange->field_count; i++)
        if (strcmp(exchange->fields[i].name, "authorization") == 0)
            return true;
    return false;
}

static const char *meaning_of(const struct remote_exchange *exchange)
{
    switch (exchange->head.status) {
    case 401:
        return has_token(exchange) ? "the server refused the token (ZTSERVE_TOKEN or --token-file)"
                                   : "the server requires a token (ZTSERVE_TOKEN or --token-file)";
    case 403:
        return "the server does not allow this request";
    case 404:
    case 410:
        return "the server has no such name";
    default:
        return "the server refused the request";
    }
}

enum zt_status client_refusal(const struct remote_exchange *exchange, struct zt_error *error)
{
    const unsigned status = exchange->head.status;
    const bool is_absent = status == 404 || status == 410;
    char *detail = detail_of(exchange);

    zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "%s (%u%s%s)", meaning_of(exchange), status,
            detail != NULL ? ": " : "", detail != NULL ? detail : "");
    error->os_error = is_absent ? ENOENT : EIO;
    free(detail);
    return error->status;
}
