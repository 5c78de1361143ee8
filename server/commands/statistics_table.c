/* Prints the table of `stats`. */
#include "commands/statistics_table.h"

#include <inttypes.h>
#include <string.h>

#include "terminal/character_set.h"
#include "terminal/plain_text.h"

#define NAME_MAX_WIDTH  48
#define SHAPE_MAX_WIDTH 20
#define TYPE_WIDTH      10
/* "-1.234e-05" */
#define NUMBER_WIDTH 10
#define COUNT_WIDTH  12
/* 255 dimensions of 20 digits and commas, and brackets. */
#define SHAPE_SIZE (255 * 21 + 8)
#define LEVELS     8

static const char *const blocks[LEVELS + 1] = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                               "\u2585", "\u2586", "\u2587", "\u2588"};
static const char *const ascii[LEVELS + 1] = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};

static size_t write_shape(FILE *stream, const struct zt_model *model,
                          const struct zt_object *object)
{
    const uint64_t *shape = zt_object_shape(model, object);
    char text[SHAPE_SIZE] = "[";
    size_t used = 1;

    for (unsigned i = 0; i < object->rank; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%" PRIu64, i > 0 ? "," : "",
                                 shape[i]);
    text[used++] = ']';
    return plain_text_write_short(stream, text, used, SHAPE_MAX_WIDTH);
}

static size_t write_type(FILE *stream, const struct zt_object *object,
                         const struct zt_component *component)
{
    const char *dtype = component != NULL ? zt_dtype_name((enum zt_dtype)component->dtype) : "-";

    if (object->layout != ZT_LAYOUT_DENSE)
        return plain_text_write_short(stream, object->format, object->format_length, TYPE_WIDTH);
    if (component != NULL && component->type != NULL)
        return plain_text_write_short(stream, component->type, component->type_length, TYPE_WIDTH);
    return plain_text_write(stream, dtype, strlen(dtype));
}

static void pad(FILE *stream, size_t written, size_t width)
{
    fprintf(stream, "%*s  ", (int)(written < width ? width - written : 0), "");
}

static void write_number(FILE *stream, enum zt_number_kind kind, union zt_number number)
{
    if (kind == ZT_NUMBER_REAL)
        fprintf(stream, "%*.4g  ", NUMBER_WIDTH, number.real);
    else if (kind == ZT_NUMBER_INTEGER)
        fprintf(stream, "%*" PRId64 "  ", NUMBER_WIDTH, number.integer);
    else
        fprintf(stream, "%*" PRIu64 "  ", NUMBER_WIDTH, number.natural);
}

/* The highest bar is that of the fullest bin; one with any element is seen. */
static void write_bars(const struct statistics_table *table, const struct statistics *statistics)
{
    const char *const *bars = table->is_utf8 ? blocks : ascii;
    uint64_t most = 1;

    for (unsigned i = 0; i < statistics->axis.bins; i++)
        most = statistics->counts[i] > most ? statistics->counts[i] : most;
    for (unsigned i = 0; i < statistics->axis.bins; i++) {
        const double share = (double)statistics->counts[i] / (double)most;
        const unsigned level = (unsigned)(share * (LEVELS - 1) + 0.5) + 1;

        fputs(bars[statistics->counts[i] > 0 ? level : 0], table->stream);
    }
}

static void write_statistics(const struct statistics_table *table,
                             const struct statistics *statistics)
{
    const struct zt_tally *tally = &statistics->tally;
    const union zt_number mean = {.real = tally->mean + tally->mean_rest};
    const union zt_number std = {.real = zt_tally_std(tally)};
    FILE *stream = table->stream;

    if (tally->finite > 0) {
        write_number(stream, statistics->kind, tally->min);
        write_number(stream, statistics->kind, tally->max);
        write_number(stream, ZT_NUMBER_REAL, mean);
        write_number(stream, ZT_NUMBER_REAL, std);
    } else {
        for (unsigned i = 0; i < 4; i++)
            fprintf(stream, "%*s  ", NUMBER_WIDTH, "-");
    }
    fprintf(stream, "%*" PRIu64 "  %*" PRIu64 "  ", COUNT_WIDTH, tally->zero, COUNT_WIDTH,
            statistics->count - tally->finite);
    if (statistics->has_histogram)
        write_bars(table, statistics);
}

void statistics_table_begin(struct statistics_table *table, const struct zt_model *model,
                            FILE *stream)
{
    *table = (struct statistics_table){.stream = stream,
                                       .name_width = strlen("OBJECT"),
                                       .shape_width = strlen("SHAPE"),
                                       .is_utf8 = character_set_is_utf8()};
    for (uint32_t i = 0; i < model->object_count; i++) {
        const struct zt_object *object = &model->objects[i];
        const size_t name =
            plain_text_write_short(NULL, object->name, object->name_length, NAME_MAX_WIDTH);
        const size_t shape = write_shape(NULL, model, object);

        table->name_width = name > table->name_width ? name : table->name_width;
        table->shape_width = shape > table->shape_width ? shape : table->shape_width;
    }
    fprintf(stream, "%-*s  %-*s  %-*s  %*s  %*s  %*s  %*s  %*s  %*s  %s\n", (int)table->name_width,
            "OBJECT", TYPE_WIDTH, "TYPE", (int)table->shape_width, "SHAPE", NUMBER_WIDTH, "MIN",
            NUMBER_WIDTH, "MAX", NUMBER_WIDTH, "MEAN", NUMBER_WIDTH, "STD", COUNT_WIDTH, "ZERO",
            COUNT_WIDTH, "NOT FINITE", "HISTOGRAM");
}

void statistics_table_row(const struct statistics_table *table, const struct zt_model *model,
                          const struct zt_object *object, const struct statistics *statistics)
{
    const struct zt_component *component =
        object->component_count > 0 ? zt_object_components(model, object) : NULL;
    FILE *stream = table->stream;

    pad(stream, plain_text_write_short(stream, object->name, object->name_length, NAME_MAX_WIDTH),
        table->name_width);
    pad(stream, write_type(stream, object, component), TYPE_WIDTH);
    pad(stream, write_shape(stream, model, object), table->shape_width);
    if (statistics != NULL)
        write_statistics(table, statistics);
    else
        fprintf(stream, "%*s", NUMBER_WIDTH, "-");
    fputc('\n', stream);
}
