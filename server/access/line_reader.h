/* Reads the files of clients, one client a line: fields between blanks; # begins a comment. It is
 * bounded and strict, because a misread line may grant access. No message repeats a field that may
 * be a secret, wherever it was put by mistake. */
#ifndef ACCESS_LINE_READER_H
#define ACCESS_LINE_READER_H

#include "access/grants.h"

struct line_reader {
    const char *key; /* of the configuration, for messages; so is path */
    const char *path;
    char *error;
    size_t error_size;
    unsigned line; /* from 1 */
    char *at;      /* in the line */
    char *end;     /* of the line: a NUL */
    char *next;    /* after the line */
    char *text_end;
};

/* Begins to read a text, which the reader changes: fields end with a NUL. The text has a NUL after
 * its end. */
void line_reader_begin(struct line_reader *reader, char *text, size_t length);

/* Moves to the next line. False at the end of the text, or, with an error, if the line is too long
 * or has other characters than text; *out_wrong says which. */
bool line_reader_next(struct line_reader *reader, bool *out_wrong);

/* Cuts out the next field. False at the end of the line, or at a comment. */
bool line_reader_field(struct line_reader *reader, struct zt_text *out_field);

/* Writes the error: key, path and line, then what is wrong. Returns false. */
__attribute__((format(printf, 2, 3))) bool line_reader_fail(const struct line_reader *reader,
                                                            const char *format, ...);

/* Reads a scope: read, write or admin. False with an error, which calls the field by its place
 * ("second"). */
bool line_reader_scope(const struct line_reader *reader, struct zt_text field, const char *place,
                       enum scope *out_scope);

/* Reads the rest of the line as globs of models; NULL if there are none. False with an error. */
bool line_reader_globs(struct line_reader *reader, struct glob_set **out_globs);

#endif
