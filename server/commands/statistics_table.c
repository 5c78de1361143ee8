/* Prints the table of `stats`. */
#include "commands/statistics_table.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "terminal/character_set.h"
#include "terminal/plain_text.h"

#define NAME_MAX_WIDTH  48
#define SHAPE_MAX_WIDTH 20
/* Minimum and maximum width of a type or a format: files may have any text there. */
#define TYPE_WIDTH     10
#define TYPE_MAX_WIDTH 32
/* "-1.234e-05" */
#define NUMBER_WIDTH 10
/* "-1.234e-305", "-2147483648" and "-9223372036854775808" */
#define F64_WIDTH   11
#define I32_WIDTH   11
#define I64_WIDTH   20
#define COUNT_WIDTH 12
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
    assert(used < sizeof(text) - 1);
    text[used++] = ']';
    return plain_text_write_short(stream, text, used, SHAPE_MAX_WIDTH);
}

static size_t write_type(FILE *stream, const struct zt_object *object,
                         const struct zt_component *component)
{
    const char *dtype = component != NULL ? zt_dtype_name((enum zt_dtype)component->dtype) : "-";

    if (object->layout != ZT_LAYOUT_DENSE)
        return plain_text_write_short(stream, object->format, object->format_length,
                                      TYPE_MAX_WIDTH);
    if (component != NULL && component->type != NULL)
        return plain_text_write_short(stream, component->type, component->type_length,
                                      TYPE_MAX_WIDTH);
    return plain_text_write(stream, dtype, strlen(dtype));
}

static void pad(FILE *stream, size_t written, size_t width)
{
    fprintf(stream, "%*s  ", (int)(written < width ? width - written : 0), "");
}

static void write_number(FILE *stream, size_t wanted, enum zt_number_kind kind,
                         union zt_number number)
{
    const int width = (int)wanted;

    if (kind == ZT_NUMBER_REAL)
        fprintf(stream, "%*.4g  ", width, number.real);
    else if (kind == ZT_NUMBER_INTEGER)
        fprintf(stream, "%*" PRId64 "  ", width, number.integer);
    else
        fprintf(stream, "%*" PRIu64 "  ", width, number.natural);
}

static void write_absent(FILE *stream, size_t width)
{
    fprintf(stream, "%*s  ", (int)width, "-");
}

/* A moment that overflows is none, as in JSON. */
static void write_moment(const struct statistics_table *table, double moment)
{
    const union zt_number number = {.real = moment};

    if (isfinite(moment))
        write_number(table->stream, table->moment_width, ZT_NUMBER_REAL, number);
    else
        write_absent(table->stream, table->moment_width);
}

/* The highest bar shows the fullest bin; every bin with an element is visible. */
static void write_bars(const struct statistics_table *table, const struct statistics *statistics)
{
    const char *const *bars = table->is_utf8 ? blocks : ascii;
    uint64_t most = 1;

    for (unsigned i = 0; i < statistics->axis.bins; i++)
        most = statistics->counts[i] > most ? statistics->counts[i] : most;
    for (unsigned i = 0; i < statistics->axis.bins; i++) {
        const double share = (double)statistics->counts[i] / (double)most;
        const unsigned level = (unsigned)(share * (LEVELS - 1) + 0.5) + 1;

        assert(level > 0 && level <= LEVELS);
        fputs(bars[statistics->counts[i] > 0 ? level : 0], table->stream);
    }
}

static void write_statistics(const struct statistics_table *table,
                             const struct statistics *statistics)
{
    const struct zt_tally *tally = &statistics->tally;
    FILE *stream = table->stream;

    if (tally->finite > 0) {
        write_number(stream, table->extreme_width, statistics->kind, tally->min);
        write_number(stream, table->extreme_width, statistics->kind, tally->max);
        write_moment(table, zt_tally_mean(tally, statistics->kind));
        write_moment(table, zt_tally_std(tally));
    } else {
        for (unsigned i = 0; i < 4; i++)
            write_absent(stream, i < 2 ? table->extreme_width : table->moment_width);
    }
    fprintf(stream, "%*" PRIu64 "  %*" PRIu64 "  ", COUNT_WIDTH, tally->zero, COUNT_WIDTH,
            statistics->count - tally->finite);
    if (statistics->has_histogram)
        write_bars(table, statistics);
}

/* Numbers of an object are known when its line is printed, what they may be at once. */
static size_t number_width(const struct zt_object *object, const struct zt_component *component)
{
    if (object->layout != ZT_LAYOUT_DENSE || component == NULL)
        return NUMBER_WIDTH;
    switch ((enum zt_dtype)component->dtype) {
    case ZT_I64:
    case ZT_U64:
        return I64_WIDTH;
    case ZT_I32:
        return I32_WIDTH;
    case ZT_F64:
        return F64_WIDTH;
    default:
        return NUMBER_WIDTH;
    }
}

static void widen(size_t *width, size_t needed)
{
    *width = needed > *width ? needed : *width;
}

static const struct zt_component *first_component(const struct zt_model *model,
                                                  const struct zt_object *object)
{
    return object->component_count > 0 ? zt_object_components(model, object) : NULL;
}

static void print_titles(const struct statistics_table *table)
{
    const int extreme = (int)table->extreme_width;
    const int moment = (int)table->moment_width;

    fprintf(table->stream, "%-*s  %-*s  %-*s  %*s  %*s  %*s  %*s  %*s  %*s  %s\n",
            (int)table->name_width, "OBJECT", (int)table->type_width, "TYPE",
            (int)table->shape_width, "SHAPE", extreme, "MIN", extreme, "MAX", moment, "MEAN",
            moment, "STD", COUNT_WIDTH, "ZERO", COUNT_WIDTH, "NOT FINITE", "HISTOGRAM");
}

void statistics_table_begin(struct statistics_table *table, const struct zt_model *model,
                            FILE *stream)
{
    *table = (struct statistics_table){.stream = stream,
                                       .name_width = strlen("OBJECT"),
                                       .shape_width = strlen("SHAPE"),
                                       .type_width = TYPE_WIDTH,
                                       .extreme_width = NUMBER_WIDTH,
                                       .moment_width = NUMBER_WIDTH,
                                       .is_utf8 = character_set_is_utf8()};
    for (uint32_t i = 0; i < model->object_count; i++) {
        const struct zt_object *object = &model->objects[i];
        const struct zt_component *component = first_component(model, object);
        const size_t width = number_width(object, component);

        widen(&table->name_width,
              plain_text_write_short(NULL, object->name, object->name_length, NAME_MAX_WIDTH));
        widen(&table->shape_width, write_shape(NULL, model, object));
        widen(&table->type_width, write_type(NULL, object, component));
        widen(&table->extreme_width, width);
        if (component != NULL && component->dtype == ZT_F64)
            widen(&table->moment_width, F64_WIDTH);
    }
    print_titles(table);
}

void statistics_table_row(const struct statistics_table *table, const struct zt_model *model,
                          const struct zt_object *object, const struct statistics *statistics)
{
    const struct zt_component *component = first_component(model, object);
    FILE *stream = table->stream;

    pad(stream, plain_text_write_short(stream, object->name, object->name_length, NAME_MAX_WIDTH),
        table->name_width);
    pad(stream, write_type(stream, object, component), table->type_width);
    pad(stream, write_shape(stream, model, object), table->shape_width);
    if (statistics != NULL)
        write_statistics(table, statistics);
    else
        fprintf(stream, "%*s", (int)table->extreme_width, "-");
    fputc('\n', stream);
}
