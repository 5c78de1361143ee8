/* A file named on the command line, opened and validated as a model; and descriptions of its kind,
 * or of why it failed. */
#ifndef COMMANDS_OPENED_FILE_H
#define COMMANDS_OPENED_FILE_H

#include <stdio.h>

#include "zt/model.h"

struct opened_file {
    struct zt_source *source;
    struct zt_model *model;
};

/* Fails as zt_source_open_file and zt_model_open do. On success the caller closes the file. */
enum zt_status opened_file_open(const char *path, struct opened_file *out_file,
                                struct zt_error *error);
void opened_file_close(struct opened_file *file);

/* Writes "message [rule, object \"x\", component \"y\", offset 64]", where the brackets hold only
 * what is known. Control characters are escaped, and long names are cut and end in "…". */
void failure_write(FILE *stream, const struct zt_error *error);

/* Writes "ztserve: path: …" and the failure on a line of standard error; returns EXIT_BAD. */
int failure_complain(const char *path, const struct zt_error *error);

/* The format of a model, and its version if it has one: "zt 1.2.0", "npz". */
void model_kind_write(FILE *stream, const struct zt_model *model);

#endif
