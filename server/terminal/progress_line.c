/* A progress line: drawn at most five times a second, and erased at the end. The time left is
 * computed from the rate of the last seconds. */
#include "terminal/progress_line.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json_write.h"
#include "terminal/character_set.h"
#include "terminal/interruption.h"
#include "terminal/plain_text.h"
#include "terminal/progress_bar.h"

#define FIRST_MS  500
#define DRAW_MS   200
#define JSON_MS   1000
#define PLAIN_MS  5000
#define SAMPLE_MS 500
#define KIB       1024.0
/* Characters of a name: at most, and those for which it is worth its place; and of the rest of the
 * line, so that the name does not change with each figure. */
#define NAME_WIDTH    40
#define NAME_LEAST    8
#define FIGURES_WIDTH 60
#define COLUMNS       80
/* The first byte of what terminals may show in two columns, in UTF-8: from U+1000 on. */
#define WIDE_BYTE 0xE1
/* Longer times are not worth a figure. */
#define HOURS_MOST 99
#define TIME_SIZE  32
#define SIZE_SIZE  24
/* A verb, and two numbers. */
#define HEAD_SIZE 64

const char *const progress_mode_words[] = {"auto", "plain", "json", "none", NULL};

bool progress_mode_read(const char *text, enum progress_mode *out_mode)
{
    for (unsigned i = 0; progress_mode_words[i] != NULL; i++)
        if (strcmp(text, progress_mode_words[i]) == 0) {
            *out_mode = (enum progress_mode)i;
            return true;
        }
    return false;
}

static int64_t interval_ms(const struct progress_line *line)
{
    return line->mode == PROGRESS_PLAIN  ? PLAIN_MS
           : line->mode == PROGRESS_JSON ? JSON_MS
                                         : DRAW_MS;
}

void progress_line_start(struct progress_line *line, enum progress_mode mode, const char *verb,
                         uint64_t total_bytes)
{
    *line = (struct progress_line){.mode = mode, .verb = verb, .total_bytes = total_bytes};
    if (mode == PROGRESS_AUTO && isatty(STDERR_FILENO) != 1)
        line->mode = PROGRESS_NONE;
    if (line->mode == PROGRESS_AUTO)
        interruption_catch();
    line->samples[0].at_ms = clock_ms();
    line->next_ms = line->samples[0].at_ms + FIRST_MS;
}

/* --- figures --- */

/* The oldest moment that is remembered. */
static unsigned oldest(const struct progress_line *line)
{
    return line->sampled < PROGRESS_SAMPLES ? 0 : (line->sampled + 1) % PROGRESS_SAMPLES;
}

/* Bytes per second; 0: not known yet. */
static double rate(const struct progress_line *line, int64_t now_ms)
{
    const unsigned at = oldest(line);
    const int64_t passed_ms = now_ms - line->samples[at].at_ms;

    if (passed_ms <= 0 || line->done_bytes < line->samples[at].bytes)
        return 0;
    return (double)(line->done_bytes - line->samples[at].bytes) * 1000 / (double)passed_ms;
}

static void take_sample(struct progress_line *line, int64_t now_ms)
{
    if (now_ms < line->samples[line->sampled % PROGRESS_SAMPLES].at_ms + SAMPLE_MS)
        return;
    line->sampled++;
    line->samples[line->sampled % PROGRESS_SAMPLES].at_ms = now_ms;
    line->samples[line->sampled % PROGRESS_SAMPLES].bytes = line->done_bytes;
}

/* Seconds; negative: not known. */
static double left_s(const struct progress_line *line, double bytes_s)
{
    if (bytes_s < 1 || line->total_bytes < line->done_bytes || line->total_bytes == 0)
        return -1;
    return (double)(line->total_bytes - line->done_bytes) / bytes_s;
}

static void format_size(double bytes, char out[SIZE_SIZE])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    unsigned unit = 0;

    for (; bytes >= 1000 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
        bytes /= KIB;
    snprintf(out, SIZE_SIZE, bytes < 10 && unit > 0 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}

/* ", 1:02:03 left"; nothing if that is not known. */
static void format_left(double seconds, char out[TIME_SIZE])
{
    const uint64_t all = seconds > 0 ? (uint64_t)seconds : 0;
    const unsigned minutes = (unsigned)(all / 60 % 60);

    out[0] = '\0';
    if (seconds < 0 || all / 3600 > HOURS_MOST)
        return;
    if (all >= 3600)
        snprintf(out, TIME_SIZE, ", %" PRIu64 ":%02u:%02u left", all / 3600, minutes,
                 (unsigned)(all % 60));
    else
        snprintf(out, TIME_SIZE, ", %u:%02u left", minutes, (unsigned)(all % 60));
}

/* Per cent of the total, at most 100; the total may be an estimate. */
static unsigned percent(const struct progress_line *line)
{
    if (line->total_bytes == 0 || line->done_bytes >= line->total_bytes)
        return line->total_bytes == 0 ? 0 : 100;
    return (unsigned)((double)line->done_bytes / (double)line->total_bytes * 100);
}

/* --- drawing --- */

static size_t terminal_columns(void)
{
    struct winsize size;

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : COLUMNS;
}

static unsigned bar_cells(const struct progress_line *line)
{
    return line->mode == PROGRESS_AUTO && line->total_bytes > 0
               ? progress_bar_cells(terminal_columns())
               : 0;
}

static void print_bar(const struct progress_line *line, FILE *stream)
{
    const unsigned cells = bar_cells(line);

    if (cells == 0)
        return;
    fputc(' ', stream);
    progress_bar_write(stream, percent(line), cells, character_set_is_utf8());
}

static void format_head(const struct progress_line *line, char out[HEAD_SIZE])
{
    if (line->files > 1)
        snprintf(out, HEAD_SIZE, "%s %u of %u", line->verb, line->file, line->files);
    else
        snprintf(out, HEAD_SIZE, "%s", line->verb);
}

/* Figures that a line has, fewer where the terminal is narrow. */
enum detail { DETAIL_SHARE, DETAIL_LEFT, DETAIL_RATE, DETAIL_BYTES };

static void print_share(const struct progress_line *line, FILE *stream, enum detail detail)
{
    char done[SIZE_SIZE];
    char total[SIZE_SIZE];

    format_size((double)line->done_bytes, done);
    format_size((double)line->total_bytes, total);
    if (line->total_bytes == 0) {
        fprintf(stream, ": %s", done);
        return;
    }
    fprintf(stream, ": %3u %%", percent(line));
    if (detail < DETAIL_BYTES)
        return;
    print_bar(line, stream);
    fprintf(stream, ", %s of %s", done, total);
}

static void print_figures(const struct progress_line *line, FILE *stream, int64_t now_ms,
                          enum detail detail)
{
    const double bytes_s = rate(line, now_ms);
    char speed[SIZE_SIZE];
    char left[TIME_SIZE];

    format_size(bytes_s, speed);
    format_left(left_s(line, bytes_s), left);
    print_share(line, stream, detail);
    if (detail >= DETAIL_RATE)
        fprintf(stream, ", %s/s", speed);
    if (detail >= DETAIL_LEFT)
        fputs(left, stream);
}

static void print_object(const struct progress_line *line, int64_t now_ms, bool is_end)
{
    const double bytes_s = rate(line, now_ms);
    const double seconds = left_s(line, bytes_s);
    struct json json;

    json_init(&json, false);
    json_object_begin(&json);
    json_string_member(&json, "event", is_end ? "end" : "progress");
    json_string_member(&json, "operation", line->verb);
    if (line->name != NULL)
        json_string_member(&json, "name", line->name);
    json_uint_member(&json, "file", line->files > 1 ? line->file : 1);
    json_uint_member(&json, "files", line->files > 1 ? line->files : 1);
    json_uint_member(&json, "bytes", line->done_bytes);
    json_uint_member(&json, "total_bytes", line->total_bytes);
    json_uint_member(&json, "bytes_per_s", (uint64_t)bytes_s);
    json_key_string(&json, "seconds_left");
    if (seconds < 0)
        json_put_null(&json);
    else
        json_uint(&json, (uint64_t)seconds);
    json_object_end(&json);
    if (!json.failed)
        fprintf(stderr, "%.*s", (int)json.length, json.text);
    json_free(&json);
}

/* --- a line --- */

static bool is_wide(const char *text)
{
    while (*text != '\0' && (unsigned char)*text < WIDE_BYTE)
        text++;
    return *text != '\0';
}

static size_t width_of(const char *text)
{
    return plain_text_write(NULL, text, strlen(text));
}

/* How many characters of the name a line has room for whose figures take so many columns; 0: the
 * name is left out. */
static size_t name_room(const struct progress_line *line, size_t columns, size_t taken)
{
    const size_t usual = FIGURES_WIDTH + bar_cells(line);
    size_t least;
    size_t room;

    if (line->name == NULL)
        return 0;
    least = is_wide(line->name) ? NAME_LEAST : width_of(line->name);
    if (columns < taken + 1 + (least < NAME_LEAST ? least : NAME_LEAST))
        return 0;
    room = columns > usual + NAME_LEAST ? columns - usual : NAME_LEAST;
    if (room > columns - taken - 1)
        room = columns - taken - 1;
    if (room > NAME_WIDTH)
        room = NAME_WIDTH;
    return is_wide(line->name) ? room / 2 : room;
}

/* The text of a line's figures, to be freed; NULL without memory. */
static char *figures_of(const struct progress_line *line, int64_t now_ms, enum detail detail)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);

    if (stream == NULL)
        return NULL;
    print_figures(line, stream, now_ms, detail);
    if (fclose(stream) == 0)
        return text;
    free(text);
    return NULL;
}

/* As many figures as fit next to the head. */
static char *fitting_figures(const struct progress_line *line, int64_t now_ms, size_t columns)
{
    enum detail detail = DETAIL_BYTES;
    char *figures = figures_of(line, now_ms, detail);

    while (figures != NULL && detail > DETAIL_SHARE && width_of(figures) > columns) {
        free(figures);
        figures = figures_of(line, now_ms, --detail);
    }
    return figures;
}

/* The last column stays free: a terminal that has written it goes to the next row with the next
 * character. */
static size_t line_columns(const struct progress_line *line)
{
    return line->mode == PROGRESS_AUTO ? terminal_columns() - 1 : (size_t)COLUMNS * 2;
}

static void write_line(const struct progress_line *line, FILE *stream, int64_t now_ms)
{
    const bool is_overwritten = line->mode == PROGRESS_AUTO;
    const size_t columns = line_columns(line);
    char head[HEAD_SIZE];
    char *figures;
    size_t taken;
    size_t room;

    format_head(line, head);
    taken = strlen(head);
    figures = fitting_figures(line, now_ms, columns > taken ? columns - taken : 0);
    if (figures == NULL)
        return;
    taken += width_of(figures);
    room = name_room(line, columns, taken);
    fputs(is_overwritten ? "\r" : "", stream);
    if (taken <= columns)
        fputs(head, stream);
    if (room > 0) {
        fputc(' ', stream);
        plain_text_write_short(stream, line->name, strlen(line->name), room);
    }
    plain_text_write_short(stream, figures, strlen(figures), columns);
    fputs(is_overwritten ? "\033[K" : "\n", stream);
    free(figures);
}

/* In one call, since standard error has no buffer: a terminal would show halves of it. */
static void print_line(const struct progress_line *line, int64_t now_ms)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);

    if (stream == NULL)
        return; /* without memory there is no progress to be seen */
    write_line(line, stream, now_ms);
    if (fclose(stream) == 0)
        fwrite(text, 1, length, stderr);
    free(text);
}

static void draw(struct progress_line *line, int64_t now_ms)
{
    line->is_drawn = line->mode == PROGRESS_AUTO;
    interruption_note_line(line->is_drawn);
    if (line->mode == PROGRESS_JSON)
        print_object(line, now_ms, false);
    else
        print_line(line, now_ms);
    fflush(stderr);
}

void progress_line_skip(struct progress_line *line, uint64_t bytes)
{
    line->done_bytes += bytes;
    for (unsigned i = 0; i < PROGRESS_SAMPLES; i++)
        line->samples[i].bytes += bytes;
}

void progress_line_advance(struct progress_line *line, uint64_t bytes)
{
    int64_t now_ms;

    line->done_bytes += bytes;
    if (line->mode == PROGRESS_NONE)
        return;
    now_ms = clock_ms();
    take_sample(line, now_ms);
    if (now_ms >= line->next_ms) {
        line->next_ms = now_ms + interval_ms(line);
        draw(line, now_ms);
    }
}

void progress_line_erase(struct progress_line *line)
{
    if (line->is_drawn)
        fputs("\r\033[K", stderr);
    fflush(stderr);
    line->is_drawn = false;
    interruption_note_line(false);
}

void progress_line_end(struct progress_line *line)
{
    if (line->mode == PROGRESS_JSON)
        print_object(line, clock_ms(), true);
    progress_line_erase(line);
    line->mode = PROGRESS_NONE;
}
