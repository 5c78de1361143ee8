/* A file that a command was given, opened and validated as a model; what it is and what failed, as
 * text. */
#ifndef COMMANDS_OPENED_FILE_H
#define COMMANDS_OPENED_FILE_H

#include <stdio.h>

#include "zt/model.h"

struct opened_file {
    struct zt_source *source;
    struct zt_model *model;
};

/* Fails as zt_source_open_file and zt_model_open do. On success it is the caller's to close. */
enum zt_status opened_file_open(const char *path, struct opened_file *out_file,
                                struct zt_error *error);
void opened_file_close(struct opened_file *file);

/* "message [rule, object \"x\", component \"y\", offset 64]", with what applies between the
 * brackets. */
void failure_describe(const struct zt_error *error, char *out_text, size_t size);

/* Enough for two names, a message and a rule. */
#define FAILURE_TEXT_SIZE 3072

/* A model's format and version, where it has one: "zt 1.2.0", "npz". */
void model_kind_write(FILE *stream, const struct zt_model *model);

#endif
