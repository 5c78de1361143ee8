/* Writes lines to standard error. A line is built on the stack and written as a whole, so that
 * lines of several threads never mix. Each thread buffers its own lines, so that threads share no
 * buffer. Text that does not fit is truncated and marked. */
#include "base/log.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/decimal.h"
#include "base/percent.h"
#include "zt/utf8.h"

/* PIPE_BUF of Linux: writes to a pipe up to this length do not mix with other writes. */
#define LINE_SIZE 4096
/* Longer messages are truncated. */
#define TEXT_SIZE 3072
/* Longer request paths are truncated; models and objects with reasonable names fit. */
#define PATH_SHOWN 1024
/* The same for other texts from the client. Browsers' User-Agent fields have about 150 bytes. */
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

/* --- standard error --- */

static _Thread_local bool gathers;
static _Thread_local size_t waiting_length;
static _Thread_local char waiting[LINE_SIZE];

static void write_out(const char *bytes, size_t length)
{
    ssize_t written;

    do
        written = write(STDERR_FILENO, bytes, length);
    while (written < 0 && errno == EINTR);
}

void log_gather(void)
{
    gathers = true;
}

void log_flush(void)
{
    if (waiting_length == 0)
        return;
    write_out(waiting, waiting_length);
    waiting_length = 0;
}

/* If may_wait is set and this thread buffers lines, the line is buffered; otherwise the buffered
 * lines are written first. Errors are ignored: the server keeps running without standard error. */
static void put_out(const char *line, size_t length, bool may_wait)
{
    assert(length > 0 && length <= sizeof(waiting));
    if (!gathers || !may_wait || length > sizeof(waiting) - waiting_length)
        log_flush();
    if (!gathers || !may_wait) {
        write_out(line, length);
        return;
    }
    memcpy(waiting + waiting_length, line, length);
    waiting_length += length;
}

/* --- lines --- */

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

/* The characters to escape in addition to hidden ones (is_hidden). */
enum escaping {
    ESCAPE_WORDS,  /* nothing */
    ESCAPE_QUOTED, /* quotes and backslashes, as in JSON */
    ESCAPE_TARGET  /* everything except printable ASCII, and quotes and backslashes, as %XX: the
                    * field is not quoted */
};

/* Returns the code point of a well-formed UTF-8 character. */
static uint32_t code_point(const unsigned char *text, size_t length)
{
    static const unsigned char first_bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t point;

    assert(length >= 1 && length <= 4);
    point = text[0] & first_bits[length];
    for (size_t i = 1; i < length; i++)
        point = point << 6 | (text[i] & 0x3F);
    return point;
}

/* Returns true for control characters, line separators and format controls (category Cf), most of
 * which are invisible or change the order in which the rest of the line is shown. */
static bool is_hidden(uint32_t point)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0, 0x1F},          {0x7F, 0x9F},       {0xAD, 0xAD},       {0x600, 0x605},
        {0x61C, 0x61C},     {0x6DD, 0x6DD},     {0x70F, 0x70F},     {0x890, 0x891},
        {0x8E2, 0x8E2},     {0x180E, 0x180E},   {0x200B, 0x200F},   {0x2028, 0x202E},
        {0x2060, 0x206F},   {0xFEFF, 0xFEFF},   {0xFFF9, 0xFFFB},   {0x110BD, 0x110BD},
        {0x110CD, 0x110CD}, {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A},
        {0xE0000, 0xE007F},
    };

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (point >= ranges[i].first && point <= ranges[i].last)
            return true;
    return false;
}

/* More than the longest escape, which is two times \uXXXX. */
#define ESCAPE_SIZE 16

/* Escapes as in JSON: above U+FFFF, a pair of surrogates. */
static void escape_point(uint32_t point, char out_escape[ESCAPE_SIZE])
{
    if (point < 0x10000)
        snprintf(out_escape, ESCAPE_SIZE, "\\u%04x", (unsigned)point);
    else
        snprintf(out_escape, ESCAPE_SIZE, "\\u%04x\\u%04x",
                 (unsigned)(0xD800 + ((point - 0x10000) >> 10)),
                 (unsigned)(0xDC00 + ((point - 0x10000) & 0x3FF)));
}

/* Prints one character and returns its length in bytes. Invalid UTF-8 bytes become \u00XX, the
 * character with that number: a log is for reading and not for recovering bytes. */
static size_t put_character(struct line *line, const unsigned char *text, size_t length,
                            enum escaping escaping)
{
    const size_t valid = zt_utf8_character((const char *)text, length);
    const size_t taken = valid > 0 && escaping != ESCAPE_TARGET ? valid : 1;
    const bool is_mark = *text == '"' || *text == '\\';
    const uint32_t point = taken > 1 ? code_point(text, taken) : *text;
    char escape[ESCAPE_SIZE];

    if (escaping == ESCAPE_TARGET && (*text <= ' ' || *text > '~' || is_mark)) {
        put(line, escape, (size_t)(zt_percent_put(escape, (char)*text) - escape));
    } else if (valid == 0 || is_hidden(point)) {
        escape_point(point, escape);
        put_text(line, escape);
    } else {
        put(line, "\\", is_mark && escaping == ESCAPE_QUOTED ? 1 : 0);
        put(line, (const char *)text, taken);
    }
    return taken;
}

/* Returns the length of the prefix that needs no escape in any form; most texts need none. */
static size_t plain_length(const unsigned char *text, size_t length)
{
    size_t plain = 0;

    while (plain < length && text[plain] > ' ' && text[plain] <= '~' && text[plain] != '"' &&
           text[plain] != '\\')
        plain++;
    return plain;
}

/* Returns true if the text fits; otherwise truncates and marks it. */
static bool put_bytes(struct line *line, struct zt_text text, size_t limit, enum escaping escaping)
{
    const unsigned char *at = (const unsigned char *)text.bytes;
    const size_t end = line->length + limit < LINE_SIZE - LINE_RESERVE ? line->length + limit
                                                                       : LINE_SIZE - LINE_RESERVE;

    for (size_t done = 0; done < text.length;) {
        const size_t left = text.length - done;
        size_t room;
        size_t plain;

        if (line->length + ESCAPE_SIZE > end) {
            put_text(line, "...");
            return false;
        }
        room = end - ESCAPE_SIZE - line->length;
        plain = plain_length(at + done, left < room ? left : room);
        if (plain > 0) {
            put(line, text.bytes + done, plain);
            done += plain;
            continue;
        }
        done += put_character(line, at + done, left, escaping);
    }
    return true;
}

static void put_escaped(struct line *line, const char *text, size_t limit, enum escaping escaping)
{
    put_bytes(line, (struct zt_text){text, strlen(text)}, limit, escaping);
}

/* Returns how many bytes of a query are this name (lower case) with its "="; 0 if the query begins
 * otherwise. Handlers decode names, so the name may be percent-encoded. */
static size_t length_of_name(const char *query, const char *name)
{
    const char *at = query;

    for (; *name != '\0'; name++) {
        const int escaped = zt_percent_value((struct zt_text){at, strnlen(at, ZT_PERCENT_LENGTH)});
        const int byte = escaped >= 0 ? escaped : (unsigned char)*at;

        if (tolower(byte) != *name)
            return 0;
        at += escaped >= 0 ? ZT_PERCENT_LENGTH : 1;
    }
    return (size_t)(at - query);
}

/* Returns the length of the text up to and including the name of a parameter that contains a token
 * (RFC 6750, section 2.3) or the signature of a permit; the whole length if there is none. */
static size_t length_to_token(const char *target)
{
    static const char *const names[] = {"access_token=", "signature=", "x-amz-signature="};
    const char *at = target;

    while ((at = strpbrk(at, "?&;")) != NULL) {
        at++;
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            const size_t length = length_of_name(at, names[i]);

            if (length > 0)
                return (size_t)(at - target) + length;
        }
    }
    return strlen(target);
}

/* Writes a request's target without tokens and signatures. The server does not accept a token
 * there, but another server might. */
static void put_target(struct line *line, const char *target, enum escaping escaping)
{
    const size_t end = line->length + PATH_SHOWN;

    while (*target != '\0') {
        const size_t length = length_to_token(target);
        const size_t limit = end > line->length ? end - line->length : 0;

        if (!put_bytes(line, (struct zt_text){target, length}, limit, escaping))
            return;
        target += length;
        if (*target == '\0')
            return;
        put_text(line, "***");
        target += strcspn(target, "&");
    }
}

static void put_decimal(struct line *line, uint64_t number)
{
    char digits[ZT_DECIMAL_SIZE];

    put(line, digits, (size_t)(zt_decimal_write(digits, number) - digits));
}

static void put_thousandths(struct line *line, uint64_t number)
{
    const char digits[] = {'.', (char)('0' + number / 100 % 10), (char)('0' + number / 10 % 10),
                           (char)('0' + number % 10)};

    put(line, digits, sizeof(digits));
}

/* Caches the formatted second, because a busy thread writes many lines within it. */
static void put_time(struct line *line)
{
    static _Thread_local time_t second = -1;
    static _Thread_local size_t length;
    static _Thread_local char text[40];
    struct timespec now;
    struct tm parts;

    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec != second) {
        second = now.tv_sec;
        gmtime_r(&second, &parts);
        length = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
    }
    put(line, text, length);
    put_thousandths(line, (uint64_t)now.tv_nsec / 1000000);
    put_text(line, "Z");
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

static void end(struct line *line, bool may_wait)
{
    assert(line->length < LINE_SIZE);
    line->bytes[line->length++] = '\n';
    put_out(line->bytes, line->length, may_wait);
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
    put_escaped(&line, text, LINE_SIZE, json ? ESCAPE_QUOTED : ESCAPE_WORDS);
    put_text(&line, json ? "\"}" : "");
    end(&line, false);
    errno = saved;
}

static void put_member(struct line *line, const char *name, const char *value, size_t limit)
{
    put_text(line, ",\"");
    put_text(line, name);
    put_text(line, "\":\"");
    put_escaped(line, value, limit, ESCAPE_QUOTED);
    put_text(line, "\"");
}

static void put_cut_json(struct line *line, const struct log_cut *cut)
{
    put_text(line, ",\"cut\":true");
    put_member(line, "end", cut->reason, 64);
    put_member(line, "during", cut->during, 64);
    put_text(line, ",\"done_bytes\":");
    put_decimal(line, cut->done_bytes);
    if (cut->total_bytes != UINT64_MAX) {
        put_text(line, ",\"total_bytes\":");
        put_decimal(line, cut->total_bytes);
    }
}

/* " cut after 12 of 34 bytes of the answer: timeout" */
static void put_cut_text(struct line *line, const struct log_cut *cut)
{
    put_text(line, " cut after ");
    put_decimal(line, cut->done_bytes);
    if (cut->total_bytes != UINT64_MAX) {
        put_text(line, " of ");
        put_decimal(line, cut->total_bytes);
    }
    put_text(line, (cut->total_bytes != UINT64_MAX ? cut->total_bytes : cut->done_bytes) == 1
                       ? " byte"
                       : " bytes");
    put_text(line, " of the ");
    put_text(line, cut->during);
    put_text(line, ": ");
    put_text(line, cut->reason);
}

/* A name and a value that a line has only if the value is known. */
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

/* Quotes are escaped in the text format too, so that a client's text cannot look like another
 * member. */
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
        put_bytes(line, known[i].value, known[i].limit, ESCAPE_QUOTED);
        put_text(line, "\"");
    }
}

static void put_request_json(struct line *line, const struct log_request_line *request)
{
    put_text(line, "request\"");
    put_member(line, "request_id", request->request_id, 256);
    put_member(line, "trace_id", request->trace_id, 64);
    put_member(line, "method", request->method, 32);
    put_text(line, ",\"path\":\"");
    put_target(line, request->path, ESCAPE_QUOTED);
    put_text(line, "\"");
    put_member(line, "route", request->route, 256);
    put_text(line, ",\"status\":");
    put_decimal(line, request->status);
    put_text(line, ",\"bytes\":");
    put_decimal(line, request->bytes);
    put_text(line, ",\"duration_ms\":");
    put_decimal(line, request->duration_us / 1000);
    put_thousandths(line, request->duration_us);
    put_known(line, request, true);
    if (request->cut.reason != NULL)
        put_cut_json(line, &request->cut);
    put_text(line, "}");
}

static void put_request_text(struct line *line, const struct log_request_line *request)
{
    put_escaped(line, request->method, 32, ESCAPE_TARGET);
    put_text(line, " ");
    put_target(line, request->path, ESCAPE_TARGET);
    put_text(line, " ");
    put_decimal(line, request->status);
    put_text(line, " ");
    put_decimal(line, request->bytes);
    put_text(line, " bytes ");
    put_decimal(line, request->duration_us / 1000);
    put_thousandths(line, request->duration_us);
    put_text(line, " ms ");
    put_escaped(line, request->request_id, 256, ESCAPE_TARGET);
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
    end(&line, true);
}
