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
    unsigned line;  /* from 1 */
    uint64_t print; /* a hash of the line; not 0 */
    char *at;       /* in the line */
    char *end;      /* of the line: a NUL */
};

/* Copies a text, and calls take with the first field of each line that has one. Fields are in
 * *out_copy, which the caller frees, and end with a NUL. Returns false, with an error, if take does
 * so, if a line is too long or has other characters than text, or if out of memory. */
bool line_reader_run(struct line_reader *reader, struct zt_text text,
                     bool (*take)(struct line_reader *reader, struct zt_text first),
                     char **out_copy);

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
