/* The parts of a line that the tokens file and the keys file share. */
#include "access/line_reader.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "input/blanks.h"
#include "zt/digest.h"
#include "zt/utf8.h"

/* Longer than any line that makes sense: the globs of a line fit into a set. */
#define LINE_MAX_BYTES (GLOB_SET_BYTES_MAX + 1024)
/* A glob and the reason why it is wrong. */
#define WHAT_SIZE (GLOB_MAX + 128)

bool line_reader_fail(const struct line_reader *reader, const char *format, ...)
{
    char what[WHAT_SIZE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    snprintf(reader->error, reader->error_size, "%s: %s, line %u: %s", reader->key, reader->path,
             reader->line, what);
    return false;
}

/* --- lines --- */

static bool check_characters(const struct line_reader *reader)
{
    if (reader->end - reader->at > LINE_MAX_BYTES)
        return line_reader_fail(reader, "the line is longer than %d bytes", LINE_MAX_BYTES);
    if (!zt_utf8_valid(reader->at, (size_t)(reader->end - reader->at)))
        return line_reader_fail(reader, "the line is not UTF-8");
    for (const char *at = reader->at; at < reader->end; at++)
        if (((unsigned char)*at < 0x20 && *at != '\t') || *at == 0x7F)
            return line_reader_fail(reader, "the line contains a control character");
    return true;
}

/* --- fields --- */

bool line_reader_field(struct line_reader *reader, struct zt_text *out_field)
{
    char *begin = reader->at;
    char *end;

    assert(reader->at <= reader->end);
    while (is_blank(*begin))
        begin++;
    if (begin == reader->end || *begin == '#')
        return false;
    for (end = begin; end < reader->end && !is_blank(*end);)
        end++;
    reader->at = end < reader->end ? end + 1 : end;
    *end = '\0';
    *out_field = (struct zt_text){begin, (size_t)(end - begin)};
    return true;
}

/* Lines may end in CR LF. */
static void begin_line(struct line_reader *reader, char *line, char *end)
{
    assert(line <= end);
    if (end > line && end[-1] == '\r')
        end--;
    *end = '\0';
    reader->line++;
    reader->at = line;
    reader->end = end;
    reader->print = zt_xxh3(line, (size_t)(end - line)) | 1;
}

bool line_reader_run(struct line_reader *reader, struct zt_text text,
                     bool (*take)(struct line_reader *reader, struct zt_text first),
                     char **out_copy)
{
    char *copy = malloc(text.length + 1);
    char *const end = copy != NULL ? copy + text.length : NULL;
    struct zt_text first;

    assert(reader->line == 0);
    *out_copy = copy;
    if (copy == NULL) {
        snprintf(reader->error, reader->error_size, "%s: out of memory", reader->key);
        return false;
    }
    if (text.length > 0)
        memcpy(copy, text.bytes, text.length);
    *end = '\0';
    for (char *line = copy, *next; line < end; line = next) {
        char *newline = memchr(line, '\n', (size_t)(end - line));

        next = newline != NULL ? newline + 1 : end;
        begin_line(reader, line, newline != NULL ? newline : end);
        if (!check_characters(reader) ||
            (line_reader_field(reader, &first) && !take(reader, first)))
            return false;
    }
    return true;
}

bool line_reader_scope(const struct line_reader *reader, struct zt_text field, const char *place,
                       enum scope *out_scope)
{
    static const char *const words[] = {
        [SCOPE_READ] = "read", [SCOPE_WRITE] = "write", [SCOPE_ADMIN] = "admin"};

    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (zt_text_is(field, words[i])) {
            *out_scope = (enum scope)i;
            return true;
        }
    }
    return line_reader_fail(reader, "the %s field is the scope: read, write or admin", place);
}

bool line_reader_globs(struct line_reader *reader, struct glob_set **out_globs)
{
    struct zt_text globs[GLOB_SET_MAX];
    struct zt_text field;
    size_t count = 0;
    size_t bytes = 0;

    while (line_reader_field(reader, &field)) {
        if (count == GLOB_SET_MAX)
            return line_reader_fail(reader, "there are more than %d globs of models", GLOB_SET_MAX);
        if (field.length > GLOB_MAX)
            return line_reader_fail(reader, "a glob of models is longer than %d bytes", GLOB_MAX);
        if (!glob_is_valid(field))
            return line_reader_fail(reader, "\"%s\" is not a glob: a [ is not closed", field.bytes);
        bytes += field.length;
        globs[count++] = field;
    }
    if (bytes > GLOB_SET_BYTES_MAX)
        return line_reader_fail(reader, "the globs are longer than %d bytes in total",
                                GLOB_SET_BYTES_MAX);
    assert(count <= GLOB_SET_MAX);
    *out_globs = count > 0 ? glob_set_new(globs, count) : NULL;
    return count == 0 || *out_globs != NULL || line_reader_fail(reader, "out of memory");
}
