/* Opening what a command was given, and telling why that failed. */
#include "commands/opened_file.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "commands/plain_text.h"

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

/* A list in brackets that grows part by part. */
struct parts {
    char *text;
    size_t size;
    unsigned count;
};

static void add_part(struct parts *parts, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add_part(struct parts *parts, const char *format, ...)
{
    size_t used = strlen(parts->text);
    va_list arguments;

    snprintf(parts->text + used, parts->size - used, "%s", parts->count++ == 0 ? " [" : ", ");
    used = strlen(parts->text);
    va_start(arguments, format);
    vsnprintf(parts->text + used, parts->size - used, format, arguments);
    va_end(arguments);
}

void failure_describe(const struct zt_error *error, char *out_text, size_t size)
{
    struct parts parts;

    snprintf(out_text, size, "%s", error->message);
    parts = (struct parts){out_text, size, 0};
    if (error->rule != NULL)
        add_part(&parts, "%s", error->rule);
    if (error->has_object)
        add_part(&parts, "object \"%s\"", error->object);
    if (error->component[0] != '\0')
        add_part(&parts, "component \"%s\"", error->component);
    if (error->offset != ZT_NO_OFFSET)
        add_part(&parts, "offset %" PRIu64, error->offset);
    if (parts.count > 0) {
        size_t used = strlen(out_text);

        snprintf(out_text + used, size - used, "]");
    }
}

void model_kind_write(FILE *stream, const struct zt_model *model)
{
    fputs(model->format_name, stream);
    if (model->version.length > 0) {
        fputc(' ', stream);
        plain_text_write(stream, model->version.bytes, model->version.length);
    }
}
