/* Lines on standard error. A line is built on the stack and written by one write, so that lines of
 * several threads never mix. Text that does not fit is cut, and the cut marked. */
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "zt/utf8.h"

/* PIPE_BUF of Linux: writes to a pipe are atomic up to this length. */
#define LINE_SIZE 4096
/* A longer message is cut. */
#define TEXT_SIZE 3072
/* A longer request path is cut; models and objects with sane names fit. */
#define PATH_SHOWN 1024
/* The same for what else comes from the client. Browsers call themselves 150 bytes long. */
#define AGENT_SHOWN 256
#define MODEL_SHOWN 512
#define WORD_SHOWN  64
/* Kept free for the end of a line. */
#define LINE_RESERVE 512

struct line {
    char bytes[LINE_SIZE];
    size_t length;
};

static _Atomic(int) log_level = LOG_LEVEL_INFO;
static _Atomic(int) log_form = LOG_FORMAT_TEXT;

static const char *const level_names[] = {"error", "warn", "info", "debug"};

void log_configure(enum log_level level, enum log_format format)
{
    atomic_store(&log_level, (int)level);
    atomic_store(&log_form, (int)format);
}

bool log_enabled(enum log_level level)
{
    return (int)level <= atomic_load_explicit(&log_level, memory_order_relaxed);
}

static void put(struct line *line, const char *bytes, size_t length)
{
    assert(line->length < LINE_SIZE);
    if (length > LINE_SIZE - 1 - line->length)
        length = LINE_SIZE - 1 - line->length;
    memcpy(line->bytes + line->length, bytes, length);
    line->length += length;
}

static void put_text(struct line *line, const char *text)
{
    put(line, text, strlen(text));
}

/* How many bytes of the character at the front may be printed as they are; 0: it must be
 * escaped. */
static size_t printable_length(const unsigned char *text, size_t length)
{
    if (*text < 0x20 || *text == 0x7F)
        return 0;
    /* U+0080 to U+009F are control characters too, to a terminal. */
    if (length > 1 && text[0] == 0xC2 && text[1] < 0xA0)
        return 0;
    return zt_utf8_character((const char *)text, length);
}

/* Escapes what JSON requires; in text everything but quotes and backslashes. Bytes that are not
 * UTF-8 become \u00XX, the character of that number: a log is for reading, not for recovering
 * bytes. */
static void put_bytes(struct line *line, struct zt_text text, size_t limit, bool json)
{
    const unsigned char *at = (const unsigned char *)text.bytes;
    const size_t end = line->length + limit < LINE_SIZE - LINE_RESERVE ? line->length + limit
                                                                       : LINE_SIZE - LINE_RESERVE;
    size_t left = text.length;
    char escape[8];

    while (left > 0) {
        size_t length = printable_length(at, left);
        const size_t taken = length > 0 ? length : 1;

        if (line->length + sizeof(escape) > end) {
            put_text(line, "...");
            return;
        }
        if (length == 0) {
            snprintf(escape, sizeof(escape), "\\u%04x", *at);
            put_text(line, escape);
        } else {
            put(line, "\\", json && (*at == '"' || *at == '\\') ? 1 : 0);
            put(line, (const char *)at, length);
        }
        at += taken;
        left -= taken;
    }
}

static void put_escaped(struct line *line, const char *text, size_t limit, bool json)
{
    put_bytes(line, (struct zt_text){text, strlen(text)}, limit, json);
}

static void put_time(struct line *line)
{
    struct timespec now;
    struct tm parts;
    char text[40];
    size_t length;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    length = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
    put(line, text, length);
    snprintf(text, sizeof(text), ".%03ldZ", now.tv_nsec / 1000000);
    put_text(line, text);
}

static void begin(struct line *line, enum log_level level, bool json)
{
    line->length = 0;
    put_text(line, json ? "{\"time\":\"" : "");
    put_time(line);
    put_text(line, json ? "\",\"level\":\"" : " ");
    put_text(line, level_names[level]);
    put_text(line, json ? "\",\"message\":\"" : " ");
}

/* Errors are ignored: the server keeps running without standard error. */
static void end(struct line *line)
{
    ssize_t written;

    assert(line->length < LINE_SIZE);
    line->bytes[line->length++] = '\n';
    do
        written = write(STDERR_FILENO, line->bytes, line->length);
    while (written < 0 && errno == EINTR);
}

void log_write(enum log_level level, const char *format, ...)
{
    const bool json = atomic_load_explicit(&log_form, memory_order_relaxed) == LOG_FORMAT_JSON;
    const int saved = errno;
    struct line line;
    char text[TEXT_SIZE];
    va_list arguments;

    if (!log_enabled(level))
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    begin(&line, level, json);
    put_escaped(&line, text, LINE_SIZE, json);
    put_text(&line, json ? "\"}" : "");
    end(&line);
    errno = saved;
}

static void put_member(struct line *line, const char *name, const char *value, size_t limit)
{
    put_text(line, ",\"");
    put_text(line, name);
    put_text(line, "\":\"");
    put_escaped(line, value, limit, true);
    put_text(line, "\"");
}

static void put_cut_json(struct line *line, const struct log_cut *cut)
{
    char numbers[96];

    put_text(line, ",\"cut\":true");
    put_member(line, "end", cut->reason, 64);
    put_member(line, "during", cut->during, 64);
    snprintf(numbers, sizeof(numbers), ",\"done_bytes\":%" PRIu64, cut->done_bytes);
    put_text(line, numbers);
    if (cut->total_bytes != UINT64_MAX) {
        snprintf(numbers, sizeof(numbers), ",\"total_bytes\":%" PRIu64, cut->total_bytes);
        put_text(line, numbers);
    }
}

/* " cut after 12 of 34 bytes of the answer: timeout" */
static void put_cut_text(struct line *line, const struct log_cut *cut)
{
    char numbers[96];

    snprintf(numbers, sizeof(numbers), " cut after %" PRIu64, cut->done_bytes);
    put_text(line, numbers);
    if (cut->total_bytes != UINT64_MAX) {
        snprintf(numbers, sizeof(numbers), " of %" PRIu64, cut->total_bytes);
        put_text(line, numbers);
    }
    put_text(line, (cut->total_bytes != UINT64_MAX ? cut->total_bytes : cut->done_bytes) == 1
                       ? " byte"
                       : " bytes");
    put_text(line, " of the ");
    put_text(line, cut->during);
    put_text(line, ": ");
    put_text(line, cut->reason);
}

/* What a line has only if it is known: name and value. */
struct known {
    const char *name;
    struct zt_text value; /* bytes NULL: unknown */
    size_t limit;
};

#define KNOWN_MOST 6

static struct zt_text text_of(const char *text)
{
    return (struct zt_text){text, text != NULL ? strlen(text) : 0};
}

static void list_known(const struct log_request_line *request, struct known out_known[KNOWN_MOST])
{
    const struct known known[KNOWN_MOST] = {
        {"client", text_of(request->client), WORD_SHOWN},
        {"forwarded", text_of(request->forwarded), WORD_SHOWN},
        {"user", text_of(request->user), AGENT_SHOWN},
        {"model", request->model, MODEL_SHOWN},
        {"code", text_of(request->code), WORD_SHOWN},
        {"user_agent", text_of(request->user_agent), AGENT_SHOWN},
    };

    memcpy(out_known, known, sizeof(known));
}

/* Quotes are escaped in text too, so that a client's words cannot look like another member. */
static void put_known(struct line *line, const struct log_request_line *request, bool json)
{
    struct known known[KNOWN_MOST];

    list_known(request, known);
    for (unsigned i = 0; i < KNOWN_MOST; i++) {
        if (known[i].value.bytes == NULL)
            continue;
        put_text(line, json ? ",\"" : " ");
        put_text(line, known[i].name);
        put_text(line, json ? "\":\"" : "=\"");
        put_bytes(line, known[i].value, known[i].limit, true);
        put_text(line, "\"");
    }
}

static void put_request_json(struct line *line, const struct log_request_line *request)
{
    char numbers[128];

    put_text(line, "request\"");
    put_member(line, "request_id", request->request_id, 256);
    put_member(line, "trace_id", request->trace_id, 64);
    put_member(line, "method", request->method, 32);
    put_member(line, "path", request->path, PATH_SHOWN);
    put_member(line, "route", request->route, 256);
    snprintf(numbers, sizeof(numbers),
             ",\"status\":%u,\"bytes\":%" PRIu64 ",\"duration_ms\":%" PRIu64 ".%03u",
             request->status, request->bytes, request->duration_us / 1000,
             (unsigned)(request->duration_us % 1000));
    put_text(line, numbers);
    put_known(line, request, true);
    if (request->cut.reason != NULL)
        put_cut_json(line, &request->cut);
    put_text(line, "}");
}

static void put_request_text(struct line *line, const struct log_request_line *request)
{
    char numbers[128];

    put_escaped(line, request->method, 32, false);
    put_text(line, " ");
    put_escaped(line, request->path, PATH_SHOWN, false);
    snprintf(numbers, sizeof(numbers), " %u %" PRIu64 " bytes %" PRIu64 ".%03u ms ",
             request->status, request->bytes, request->duration_us / 1000,
             (unsigned)(request->duration_us % 1000));
    put_text(line, numbers);
    put_escaped(line, request->request_id, 256, false);
    put_known(line, request, false);
    if (request->cut.reason != NULL)
        put_cut_text(line, &request->cut);
}

void log_request(const struct log_request_line *request)
{
    const bool json = atomic_load_explicit(&log_form, memory_order_relaxed) == LOG_FORMAT_JSON;
    struct line line;

    if (!log_enabled(LOG_LEVEL_INFO))
        return;
    begin(&line, LOG_LEVEL_INFO, json);
    if (json)
        put_request_json(&line, request);
    else
        put_request_text(&line, request);
    end(&line);
}
