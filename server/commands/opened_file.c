/* Opens files for commands, and describes failures. */
#include "commands/opened_file.h"

#include <inttypes.h>
#include <string.h>

#include "commands/commands.h"
#include "commands/plain_text.h"

/* Longer names are cut: nobody reads more. */
#define NAME_CHARACTERS_MAX 100

enum zt_status opened_file_open(const char *path, struct opened_file *out_file,
                                struct zt_error *error)
{
    struct opened_file file = {NULL, NULL};
    enum zt_status status = zt_source_open_file(path, &file.source, error);

    if (status != ZT_OK)
        return status;
    status = zt_model_open(file.source, &file.model, error);
    if (status != ZT_OK) {
        zt_source_close(file.source);
        return status;
    }
    *out_file = file;
    return ZT_OK;
}

void opened_file_close(struct opened_file *file)
{
    zt_model_free(file->model);
    zt_source_close(file->source);
}

/* The text before the next item of the bracketed list. */
static const char *separator(unsigned *items)
{
    return (*items)++ == 0 ? " [" : ", ";
}

static void write_name(FILE *stream, const char *what, const char *name, size_t length)
{
    fprintf(stream, "%s \"", what);
    plain_text_write_short(stream, name, length, NAME_CHARACTERS_MAX);
    fputc('"', stream);
}

void failure_write(FILE *stream, const struct zt_error *error)
{
    unsigned items = 0;

    plain_text_write(stream, error->message, strlen(error->message));
    if (error->rule != NULL)
        fprintf(stream, "%s%s", separator(&items), error->rule);
    if (error->has_object) {
        fputs(separator(&items), stream);
        write_name(stream, "object", error->object, error->object_length);
    }
    if (error->component_length > 0) {
        fputs(separator(&items), stream);
        write_name(stream, "component", error->component, error->component_length);
    }
    if (error->offset != ZT_NO_OFFSET)
        fprintf(stream, "%soffset %" PRIu64, separator(&items), error->offset);
    if (items > 0)
        fputc(']', stream);
}

int failure_complain(const char *path, const struct zt_error *error)
{
    fputs("ztserve: ", stderr);
    plain_text_write(stderr, path, strlen(path));
    fputs(": ", stderr);
    failure_write(stderr, error);
    fputc('\n', stderr);
    return EXIT_BAD;
}

void model_kind_write(FILE *stream, const struct zt_model *model)
{
    fputs(model->format_name, stream);
    if (model->version.length > 0) {
        fputc(' ', stream);
        plain_text_write(stream, model->version.bytes, model->version.length);
    }
}
