/* The transfer ends with the status line: the callback for header lines refuses to go on. */
#include "remote/probe.h"

#include <assert.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define STATUS_DIGITS 3

/* --- the URL --- */

static bool is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "[::1]") == 0;
}

static bool part_is(CURLU *handle, CURLUPart part, const char *wanted)
{
    char *text = NULL;
    const bool is_it = curl_url_get(handle, part, &text, 0) == CURLUE_OK
                           ? wanted != NULL && strcmp(text, wanted) == 0
                           : wanted == NULL;

    curl_free(text);
    return is_it;
}

bool probe_url_parse(struct probe *probe, const char *url, const char *default_path)
{
    CURLU *handle = curl_url();
    char *host = NULL;
    char *whole = NULL;
    bool is_parsed;

    assert(default_path[0] == '/');
    is_parsed =
        handle != NULL && strncasecmp(url, "http", 4) == 0 &&
        curl_url_set(handle, CURLUPART_URL, url, CURLU_DISALLOW_USER | CURLU_PATH_AS_IS) ==
            CURLUE_OK &&
        (part_is(handle, CURLUPART_SCHEME, "http") || part_is(handle, CURLUPART_SCHEME, "https")) &&
        curl_url_set(handle, CURLUPART_FRAGMENT, NULL, 0) == CURLUE_OK;
    if (is_parsed && part_is(handle, CURLUPART_PATH, "/") && part_is(handle, CURLUPART_QUERY, NULL))
        is_parsed = curl_url_set(handle, CURLUPART_PATH, default_path, 0) == CURLUE_OK;
    is_parsed = is_parsed && curl_url_get(handle, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
                curl_url_get(handle, CURLUPART_URL, &whole, 0) == CURLUE_OK &&
                strlen(whole) < sizeof(probe->url);
    if (is_parsed) {
        strcpy(probe->url, whole);
        probe->is_loopback = is_loopback(host);
    }
    curl_free(host);
    curl_free(whole);
    curl_url_cleanup(handle);
    return is_parsed;
}

/* --- the answer --- */

struct answer {
    bool has_status;
    char *text; /* PROBE_TEXT_SIZE bytes */
};

/* "HTTP/1.1 200 OK" (RFC 9112 section 4): copies the status and the text behind it. False if the
 * line is something else. The space behind the status may be missing, as many servers omit it. */
static bool read_status(const char *line, size_t length, char out_text[PROBE_TEXT_SIZE])
{
    static const char digits[] = "0123456789";
    char text[PROBE_TEXT_SIZE];
    char *status = text + strlen("HTTP/1.1 ");

    if (length < 2 || length >= sizeof(text) || memcmp(line + length - 2, "\r\n", 2) != 0)
        return false;
    memcpy(text, line, length);
    text[length - 2] = '\0';
    if (strncmp(text, "HTTP/1.", 7) != 0 || strspn(text + 7, digits) != 1 || text[8] != ' ' ||
        strspn(status, digits) != STATUS_DIGITS ||
        (status[STATUS_DIGITS] != '\0' && status[STATUS_DIGITS] != ' '))
        return false;
    for (size_t i = 0; i < length - 2; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7F)
            return false;
    strcpy(out_text, status);
    return true;
}

static size_t take_line(char *line, size_t size, size_t count, void *context)
{
    struct answer *answer = context;

    answer->has_status = read_status(line, size * count, answer->text);
    return 0;
}

static void explain(CURL *handle, CURLcode code, const char *reason, char out_text[PROBE_TEXT_SIZE])
{
    long os_error = 0;

    switch (code) {
    case CURLE_COULDNT_CONNECT:
        curl_easy_getinfo(handle, CURLINFO_OS_ERRNO, &os_error);
        snprintf(out_text, PROBE_TEXT_SIZE, "%s",
                 os_error != 0 ? strerrordesc_np((int)os_error) : reason);
        break;
    case CURLE_COULDNT_RESOLVE_HOST:
        snprintf(out_text, PROBE_TEXT_SIZE, "%s", reason);
        break;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_PEER_FAILED_VERIFICATION:
        snprintf(out_text, PROBE_TEXT_SIZE, "TLS: %s", reason);
        break;
    default:
        snprintf(out_text, PROBE_TEXT_SIZE, "the response is not HTTP, or incomplete");
    }
}

/* --- the request --- */

static bool add_field(struct curl_slist **fields, const char *beginning, const char *value)
{
    struct curl_slist *longer = NULL;
    char *line;

    if (asprintf(&line, "%s%s", beginning, value) >= 0) {
        longer = curl_slist_append(*fields, line);
        free(line);
    }
    if (longer != NULL)
        *fields = longer;
    return longer != NULL;
}

static void set_options(CURL *handle, const struct probe *probe)
{
    curl_easy_setopt(handle, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(handle, CURLOPT_PROXY, "");
    curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(handle, CURLOPT_USERAGENT, "ztserve-healthcheck");
    curl_easy_setopt(handle, CURLOPT_TIMEOUT, (long)probe->timeout_s);
#if LIBCURL_VERSION_NUM >= 0x075700
    /* Waits for no thread that looks a name up. */
    curl_easy_setopt(handle, CURLOPT_QUICK_EXIT, 1L);
#endif
    if (probe->ca_file != NULL) {
        curl_easy_setopt(handle, CURLOPT_CAINFO, probe->ca_file);
        curl_easy_setopt(handle, CURLOPT_CAPATH, NULL);
    }
    if (probe->any_certificate) {
        curl_easy_setopt(handle, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(handle, CURLOPT_SSL_VERIFYHOST, 0L);
    }
}

bool probe_run(const struct probe *probe, char out_text[PROBE_TEXT_SIZE])
{
    struct answer answer = {.text = out_text};
    char reason[CURL_ERROR_SIZE] = "";
    struct curl_slist *fields = NULL;
    CURL *handle = curl_easy_init();
    CURLcode code = CURLE_OUT_OF_MEMORY;

    assert(probe->url[0] != '\0' && probe->timeout_s > 0);
    if (handle != NULL && add_field(&fields, "Accept:", "") &&
        add_field(&fields, "Connection: close", "") &&
        (probe->host_field == NULL || add_field(&fields, "Host: ", probe->host_field)) &&
        (probe->token == NULL || add_field(&fields, "Authorization: Bearer ", probe->token)) &&
        curl_easy_setopt(handle, CURLOPT_URL, probe->url) == CURLE_OK) {
        set_options(handle, probe);
        curl_easy_setopt(handle, CURLOPT_HTTPHEADER, fields);
        curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, reason);
        curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, take_line);
        curl_easy_setopt(handle, CURLOPT_HEADERDATA, &answer);
        code = curl_easy_perform(handle);
    }
    if (code == CURLE_OPERATION_TIMEDOUT)
        snprintf(out_text, PROBE_TEXT_SIZE, "no answer within %u s", probe->timeout_s);
    else if (code == CURLE_OUT_OF_MEMORY)
        snprintf(out_text, PROBE_TEXT_SIZE, "out of memory");
    else if (!answer.has_status)
        explain(handle, code, reason, out_text);
    curl_slist_free_all(fields);
    curl_easy_cleanup(handle);
    return answer.has_status;
}
