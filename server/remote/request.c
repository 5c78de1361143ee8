/* Everything of a request but its body. Options are set for one request: the handle is cleared
 * before the next. */
#include "remote/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MIB UINT64_C(1048576)

#define CONNECT_MS 3000L
/* To a server that is not ours and may be on the other side of the world. */
#define PATIENT_CONNECT_MS 15000
/* Smaller ones cost half as much processor time again. */
#define BUFFER_BYTES 262144L
/* Slower than this for so long counts as dead. */
#define SLOW_BYTES_S 65536L
#define SLOW_S       10L
/* The speed of a shorter body is meaningless. */
#define LONG_BODY    MIB
#define TRY_MS       15000
#define TRY_MS_A_MIB 1000

bool request_host(const char *origin, char out_host[REQUEST_HOST_SIZE])
{
    const bool is_tls = strncasecmp(origin, "https://", 8) == 0;
    const char *host = origin + (is_tls ? 8 : 7);
    const char *port = is_tls ? ":443" : ":80";
    size_t length;

    if (!is_tls && strncasecmp(origin, "http://", 7) != 0)
        return false;
    length = strlen(host);
    if (length > strlen(port) && strcmp(host + length - strlen(port), port) == 0)
        length -= strlen(port);
    if (length == 0 || length >= REQUEST_HOST_SIZE || strcspn(host, "/?#@ ") < length)
        return false;
    memcpy(out_host, host, length);
    out_host[length] = '\0';
    return true;
}

static bool add_field(struct curl_slist **fields, const char *name, const char *value)
{
    /* Without this, libcurl would remove a field with an empty value. */
    const char *const colon = value[0] != '\0' ? ": " : ";";
    struct curl_slist *longer;
    char *line;

    if (strpbrk(value, "\r\n") != NULL)
        return false;
    if (asprintf(&line, "%s%s%s", name, colon, value) < 0)
        return false;
    longer = curl_slist_append(*fields, line);
    free(line);
    if (longer == NULL)
        return false;
    *fields = longer;
    return true;
}

static bool add_if_set(struct curl_slist **fields, const char *name, const char *value)
{
    return value[0] == '\0' || add_field(fields, name, value);
}

static bool add_signature(struct curl_slist **fields, const struct signed_fields *signature)
{
    if (signature == NULL || signature->authorization[0] == '\0')
        return true;
    return add_field(fields, "authorization", signature->authorization) &&
           add_field(fields, "x-amz-date", signature->date) &&
           add_if_set(fields, "x-amz-content-sha256", signature->content_sha256) &&
           add_if_set(fields, "x-amz-security-token", signature->token);
}

static bool add_fields(struct curl_slist **fields, const struct remote_exchange *exchange,
                       const struct signed_fields *signature)
{
    char range[64];
    char host[REQUEST_HOST_SIZE];
    bool added = request_host(exchange->origin, host) && add_field(fields, "Host", host);

    for (unsigned i = 0; added && i < exchange->field_count; i++)
        added = add_field(fields, exchange->fields[i].name, exchange->fields[i].value);
    if (added && exchange->has_range) {
        snprintf(range, sizeof(range), "bytes=%llu-%llu",
                 (unsigned long long)remote_range_first(exchange),
                 (unsigned long long)exchange->range_last);
        added = add_field(fields, "range", range);
    }
    return added && add_signature(fields, signature);
}

static CURLcode set_address(CURL *handle, const struct remote_exchange *exchange)
{
    CURLcode code;
    char *address;

    if (asprintf(&address, "%s%s%s%s", exchange->origin, exchange->path,
                 exchange->query != NULL ? "?" : "",
                 exchange->query != NULL ? exchange->query : "") < 0)
        return CURLE_OUT_OF_MEMORY;
    code = curl_easy_setopt(handle, CURLOPT_URL, address);
    free(address);
    return code;
}

static void set_method(CURL *handle, const struct remote_exchange *exchange)
{
    const bool is_get = strcmp(exchange->method, "GET") == 0;
    const bool is_delete = strcmp(exchange->method, "DELETE") == 0;

    if (strcmp(exchange->method, "HEAD") == 0) {
        curl_easy_setopt(handle, CURLOPT_NOBODY, 1L);
    } else if (exchange->body != REMOTE_BODY_NONE || (!is_get && !is_delete)) {
        /* The same for POST as for PUT: libcurl's POST adds unwanted fields. */
        curl_easy_setopt(handle, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, exchange->method);
        curl_easy_setopt(
            handle, CURLOPT_INFILESIZE_LARGE,
            (curl_off_t)(exchange->body != REMOTE_BODY_NONE ? exchange->body_length : 0));
    } else if (!is_get)
        curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, exchange->method);
}

/* The services of a machine's own keeper (credentials) are at addresses that mean another machine's
 * to a proxy. */
static bool is_beside(const char *origin)
{
    static const char *const beginnings[] = {"http://169.254.", "http://[fd00:ec2:"};

    return strncmp(origin, beginnings[0], strlen(beginnings[0])) == 0 ||
           strncmp(origin, beginnings[1], strlen(beginnings[1])) == 0;
}

bool request_uses_proxy(const struct request_peer *peer, const char *origin)
{
    return peer->proxy != NULL && !is_beside(origin);
}

static void set_connection(CURL *handle, const struct request_peer *peer, const char *origin)
{
    curl_easy_setopt(handle, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    /* "": not from the environment either. */
    if (!peer->system_proxy)
        curl_easy_setopt(handle, CURLOPT_PROXY,
                         request_uses_proxy(peer, origin) ? peer->proxy : "");
    curl_easy_setopt(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(handle, CURLOPT_BUFFERSIZE, BUFFER_BYTES);
    curl_easy_setopt(handle, CURLOPT_UPLOAD_BUFFERSIZE, BUFFER_BYTES);
    curl_easy_setopt(handle, CURLOPT_USERAGENT, "ztserve/" ZTSERVE_VERSION);
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
    /* Waits for no thread that looks a name up. */
    curl_easy_setopt(handle, CURLOPT_QUICK_EXIT, 1L);
#endif
    if (peer->ca_file != NULL) {
        /* The one file alone: libcurl then keeps what is in it from one connection to the next. */
        curl_easy_setopt(handle, CURLOPT_CAINFO, peer->ca_file);
        curl_easy_setopt(handle, CURLOPT_CAPATH, NULL);
    }
}

/* The longer of the two bodies. */
static uint64_t longest_body(const struct remote_exchange *exchange)
{
    uint64_t length = exchange->body != REMOTE_BODY_NONE ? exchange->body_length : 0;

    if (exchange->into != NULL && exchange->into_length > length)
        length = exchange->into_length;
    if (exchange->has_range && exchange->range_last - exchange->range_first > length)
        length = exchange->range_last - exchange->range_first;
    return length;
}

/* For remote stores and slow lines: only a connection without any progress is dead. */
static void set_stall_limits(CURL *handle, unsigned stall_s, uint64_t limit_ms)
{
    const uint64_t connect_ms = (uint64_t)stall_s * 1000;

    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS,
                     (long)(connect_ms < PATIENT_CONNECT_MS ? connect_ms : PATIENT_CONNECT_MS));
    curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, (long)limit_ms);
    curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, (long)stall_s);
}

static void set_limits(CURL *handle, const struct remote_exchange *exchange, uint64_t limit_ms)
{
    const uint64_t length = longest_body(exchange);
    uint64_t try_ms = exchange->try_ms;

    if (exchange->stall_s > 0) {
        set_stall_limits(handle, exchange->stall_s, limit_ms);
        return;
    }
    if (try_ms == 0)
        try_ms = TRY_MS + length / MIB * TRY_MS_A_MIB;
    if (try_ms < limit_ms)
        limit_ms = try_ms;
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, (long)(limit_ms > 0 ? limit_ms : 1));
    if (length < LONG_BODY)
        return;
    curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT,
                     exchange->slow_bytes_s != 0 ? (long)exchange->slow_bytes_s : SLOW_BYTES_S);
    curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, SLOW_S);
}

bool request_prepare(CURL *handle, const struct request_peer *peer,
                     const struct remote_exchange *exchange, const struct signed_fields *signature,
                     uint64_t limit_ms, struct curl_slist **out_fields)
{
    struct curl_slist *fields = NULL;

    curl_easy_reset(handle);
    if (!add_fields(&fields, exchange, signature) ||
        curl_easy_setopt(handle, CURLOPT_HTTPHEADER, fields) != CURLE_OK ||
        set_address(handle, exchange) != CURLE_OK) {
        curl_slist_free_all(fields);
        return false;
    }
    set_method(handle, exchange);
    set_connection(handle, peer, exchange->origin);
    set_limits(handle, exchange, limit_ms);
    *out_fields = fields;
    return true;
}
