/* The table of `ls`. Every cell is formatted twice, first to measure it and then to print it, so
 * that a table of a million objects takes no memory. */
#include "commands/listing.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "files/opened_file.h"
#include "terminal/plain_text.h"

/* Longer names are cut. Longer shapes are shown whole and shift only their own line. */
#define WIDTH_MAX 60
/* 255 dimensions of 20 digits, commas and brackets. */
#define SHAPE_SIZE (255 * 21 + 8)

enum column { OBJECT, COMPONENT, FORMAT, DTYPE, SHAPE, BYTES, ENCODING, DIGEST, COLUMNS };

static const char *const titles[COLUMNS] = {"OBJECT", "COMPONENT", "FORMAT",   "DTYPE",
                                            "SHAPE",  "BYTES",     "ENCODING", "DIGEST"};

struct row {
    const struct zt_model *model;
    const struct zt_object *object;
    const struct zt_component *component; /* NULL: an object without components */
};

static size_t write_string(FILE *stream, const char *text)
{
    return plain_text_write(stream, text, strlen(text));
}

/* Text that comes from the file. */
static size_t write_name(FILE *stream, const char *text, size_t length)
{
    return plain_text_write_short(stream, text, length, WIDTH_MAX);
}

static size_t write_shape(FILE *stream, const struct row *row)
{
    char text[SHAPE_SIZE] = "[";
    size_t used = 1;
    const uint64_t *shape = zt_object_shape(row->model, row->object);

    for (unsigned i = 0; i < row->object->rank; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%" PRIu64, i > 0 ? "," : "",
                                 shape[i]);
    }
    assert(used < sizeof(text));
    text[used++] = ']';
    return plain_text_write(stream, text, used);
}

/* The storage type, and the logical one if it differs. */
static size_t write_dtype(FILE *stream, const struct zt_component *component)
{
    size_t width = write_string(stream, zt_dtype_name((enum zt_dtype)component->dtype));

    if (component->type != NULL) {
        width += write_string(stream, " as ");
        width += write_name(stream, component->type, component->type_length);
    }
    return width;
}

static size_t write_number(FILE *stream, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRIu64, number);
    return write_string(stream, text);
}

/* The algorithm of a digest: the text before the colon. */
static size_t write_algorithm(FILE *stream, const struct zt_component *component)
{
    const char *colon;
    size_t length;

    if (component->digest == NULL)
        return write_string(stream, "-");
    colon = memchr(component->digest, ':', component->digest_length);
    length = colon != NULL ? (size_t)(colon - component->digest) : component->digest_length;
    return write_name(stream, component->digest, length);
}

static size_t write_component_cell(FILE *stream, const struct zt_component *component,
                                   enum column column)
{
    switch (column) {
    case COMPONENT:
        return write_name(stream, component->name, component->name_length);
    case DTYPE:
        return write_dtype(stream, component);
    case BYTES:
        return write_number(stream, component->length);
    case ENCODING:
        return write_name(stream, component->encoding_name, component->encoding_length);
    default:
        return write_algorithm(stream, component);
    }
}

/* Writes a cell, or only measures it if stream is NULL. Returns its width. */
static size_t write_cell(FILE *stream, const struct row *row, enum column column)
{
    switch (column) {
    case OBJECT:
        return write_name(stream, row->object->name, row->object->name_length);
    case FORMAT:
        return write_name(stream, row->object->format, row->object->format_length);
    case SHAPE:
        return write_shape(stream, row);
    default:
        return row->component != NULL ? write_component_cell(stream, row->component, column)
                                      : write_string(stream, "-");
    }
}

/* Calls visit for each line of the table. */
static void each_row(const struct zt_model *model,
                     void (*visit)(const struct row *row, void *context), void *context)
{
    for (uint32_t i = 0; i < model->object_count; i++) {
        const struct zt_object *object = &model->objects[i];
        struct row row = {model, object, NULL};

        if (object->component_count == 0)
            visit(&row, context);
        for (uint32_t j = 0; j < object->component_count; j++) {
            row.component = &zt_object_components(model, object)[j];
            visit(&row, context);
        }
    }
}

struct table {
    FILE *stream;
    size_t widths[COLUMNS];
};

static void measure(const struct row *row, void *context)
{
    struct table *table = context;

    for (int column = 0; column < COLUMNS; column++) {
        size_t width = write_cell(NULL, row, (enum column)column);

        width = width < WIDTH_MAX ? width : WIDTH_MAX;
        table->widths[column] = width > table->widths[column] ? width : table->widths[column];
    }
}

static void pad(const struct table *table, int column, size_t written)
{
    size_t width = table->widths[column];

    fprintf(table->stream, "%*s", (int)(written < width ? width - written : 0), "");
}

/* Separates a column from the previous one, and aligns numbers to the right. */
static void begin_cell(const struct table *table, int column, size_t width)
{
    if (column > 0)
        fputs("  ", table->stream);
    if (column == BYTES)
        pad(table, column, width);
}

static void end_cell(const struct table *table, int column, size_t width)
{
    if (column != BYTES && column + 1 < COLUMNS)
        pad(table, column, width);
}

static void show(const struct row *row, void *context)
{
    const struct table *table = context;

    for (int column = 0; column < COLUMNS; column++) {
        begin_cell(table, column, column == BYTES ? write_cell(NULL, row, BYTES) : 0);
        end_cell(table, column, write_cell(table->stream, row, (enum column)column));
    }
    fputc('\n', table->stream);
}

static void show_titles(struct table *table)
{
    for (int column = 0; column < COLUMNS; column++) {
        size_t width = strlen(titles[column]);

        begin_cell(table, column, width);
        fputs(titles[column], table->stream);
        end_cell(table, column, width);
    }
    fputc('\n', table->stream);
}

void listing_format_size(uint64_t bytes, char *out_text, size_t size)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double shown = (double)bytes / 1024;
    unsigned unit = 0;

    if (bytes < 1024) {
        snprintf(out_text, size, "%" PRIu64 " byte%s", bytes, bytes == 1 ? "" : "s");
        return;
    }
    while (shown >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        shown /= 1024;
        unit++;
    }
    snprintf(out_text, size, "%.1f %s", shown, units[unit]);
}

/* "2359296 bytes (2.2 MiB)" */
static void show_size(FILE *stream, uint64_t bytes)
{
    char text[32];

    fprintf(stream, "%" PRIu64 " byte%s", bytes, bytes == 1 ? "" : "s");
    listing_format_size(bytes, text, sizeof(text));
    if (bytes >= 1024)
        fprintf(stream, " (%s)", text);
}

void listing_format_count(uint64_t count, char *out_text, size_t size)
{
    static const char *const units[] = {"K", "M", "B", "T"};
    double shown = (double)count / 1000;
    unsigned unit = 0;

    if (count < 1000) {
        snprintf(out_text, size, "%" PRIu64, count);
        return;
    }
    /* What would be rounded to 1000.0 is shown in the next unit. */
    for (; shown >= 999.95 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
        shown /= 1000;
    snprintf(out_text, size, "%.1f %s", shown, units[unit]);
}

/* Nothing if the number of parameters does not fit in 64 bits. */
static void show_parameters(FILE *stream, const struct zt_model *model)
{
    uint64_t count;
    char text[32];

    if (!zt_model_elements(model, &count))
        return;
    listing_format_count(count, text, sizeof(text));
    fprintf(stream, "%s parameter%s, ", text, count == 1 ? "" : "s");
}

void listing_print_totals(const struct zt_model *model, uint64_t bytes, FILE *stream)
{
    fprintf(stream, "%" PRIu32 " object%s, %" PRIu32 " component%s, ", model->object_count,
            model->object_count == 1 ? "" : "s", model->component_count,
            model->component_count == 1 ? "" : "s");
    show_parameters(stream, model);
    show_size(stream, bytes);
    fputs(", ", stream);
    model_kind_write(stream, model);
    fputc('\n', stream);
}

void listing_print(const struct zt_model *model, FILE *stream)
{
    struct table table = {.stream = stream};

    for (int column = 0; column < COLUMNS; column++)
        table.widths[column] = strlen(titles[column]);
    if (model->object_count == 0)
        return;
    each_row(model, measure, &table);
    show_titles(&table);
    each_row(model, show, &table);
}
