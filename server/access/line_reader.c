/* The parts of a line that the tokens file and the keys file share. */
#include "access/line_reader.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/glob.h"
#include "input/blanks.h"
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

void line_reader_begin(struct line_reader *reader, char *text, size_t length)
{
    assert(text[length] == '\0');
    reader->line = 0;
    reader->at = text;
    reader->end = text;
    reader->next = text;
    reader->text_end = text + length;
}

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

bool line_reader_next(struct line_reader *reader, bool *out_wrong)
{
    char *newline;

    assert(reader->next <= reader->text_end);
    *out_wrong = false;
    if (reader->next == reader->text_end)
        return false;
    newline = memchr(reader->next, '\n', (size_t)(reader->text_end - reader->next));
    reader->line++;
    reader->at = reader->next;
    reader->end = newline != NULL ? newline : reader->text_end;
    reader->next = newline != NULL ? newline + 1 : reader->text_end;
    /* Lines may end in CR LF. */
    if (reader->end > reader->at && reader->end[-1] == '\r')
        reader->end--;
    *reader->end = '\0';
    *out_wrong = !check_characters(reader);
    return !*out_wrong;
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
