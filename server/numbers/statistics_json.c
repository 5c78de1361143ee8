/* Writes statistics as JSON. */
#include "numbers/statistics_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Of the digits of any double, with sign and exponent. */
#define NUMBER_SIZE 40

void number_write(struct json *json, double value)
{
    char text[NUMBER_SIZE];
    int length;

    if (!isfinite(value)) {
        json_put_null(json);
        return;
    }
    length = snprintf(text, sizeof(text), "%.15g", value);
    /* What 15 digits do not tell apart takes 17. */
    if (strtod(text, NULL) != value)
        length = snprintf(text, sizeof(text), "%.17g", value);
    json_raw(json, text, (size_t)length);
}

void number_write_float(struct json *json, float value)
{
    char text[NUMBER_SIZE];
    int length;

    if (!isfinite(value)) {
        json_put_null(json);
        return;
    }
    length = snprintf(text, sizeof(text), "%.6g", (double)value);
    if (strtof(text, NULL) != value)
        length = snprintf(text, sizeof(text), "%.9g", (double)value);
    json_raw(json, text, (size_t)length);
}

static void write_number(struct json *json, enum zt_number_kind kind, union zt_number number)
{
    char text[NUMBER_SIZE];

    if (kind == ZT_NUMBER_REAL)
        number_write(json, number.real);
    else if (kind == ZT_NUMBER_NATURAL)
        json_uint(json, number.natural);
    else
        json_raw(json, text, (size_t)snprintf(text, sizeof(text), "%" PRId64, number.integer));
}

static void write_subject(struct json *json, const struct statistics_subject *subject)
{
    const struct zt_component *component = subject->component;
    const char *dtype = zt_dtype_name((enum zt_dtype)component->dtype);
    const struct zt_slice *slice = subject->slice;
    const uint64_t *shape =
        slice != NULL ? slice->shape : zt_object_shape(subject->model, subject->object);
    const unsigned rank = slice != NULL ? slice->rank : subject->object->rank;

    json_string_member(json, "dtype", dtype);
    json_key_string(json, "type");
    if (component->type != NULL)
        json_text(json, (struct zt_text){component->type, component->type_length});
    else
        json_put_string(json, dtype);
    json_array_member(json, "shape");
    for (unsigned i = 0; i < rank; i++)
        json_uint(json, shape[i]);
    json_array_end(json);
}

static void write_counts(struct json *json, const struct statistics *statistics)
{
    const struct zt_tally *tally = &statistics->tally;

    json_uint_member(json, "count", statistics->count);
    json_uint_member(json, "finite", tally->finite);
    json_uint_member(json, "nan", tally->nan);
    json_uint_member(json, "positive_inf", tally->positive_inf);
    json_uint_member(json, "negative_inf", tally->negative_inf);
    json_uint_member(json, "zero", tally->zero);
}

static void write_moments(struct json *json, const struct statistics *statistics)
{
    const struct zt_tally *tally = &statistics->tally;
    const bool has_any = tally->finite > 0;
    const enum zt_number_kind kind = statistics->kind;
    static const union zt_number none = {.real = NAN};
    /* Magnitudes of integers are natural. */
    const enum zt_number_kind magnitude = kind == ZT_NUMBER_REAL ? kind : ZT_NUMBER_NATURAL;

    json_key_string(json, "min");
    write_number(json, has_any ? kind : ZT_NUMBER_REAL, has_any ? tally->min : none);
    json_key_string(json, "max");
    write_number(json, has_any ? kind : ZT_NUMBER_REAL, has_any ? tally->max : none);
    json_key_string(json, "mean");
    number_write(json, zt_tally_mean(tally, kind));
    json_key_string(json, "std");
    number_write(json, zt_tally_std(tally));
    json_key_string(json, "abs_max");
    write_number(json, has_any ? magnitude : ZT_NUMBER_REAL,
                 has_any ? zt_tally_abs_max(tally, kind) : none);
}

static void write_histogram(struct json *json, const struct statistics *statistics)
{
    json_key_string(json, "histogram");
    if (!statistics->has_histogram) {
        json_put_null(json);
        return;
    }
    json_object_begin(json);
    json_array_member(json, "edges");
    for (unsigned i = 0; i <= statistics->axis.bins; i++)
        number_write(json, statistics->axis.edges[i]);
    json_array_end(json);
    json_array_member(json, "counts");
    for (unsigned i = 0; i < statistics->axis.bins; i++)
        json_uint(json, statistics->counts[i]);
    json_array_end(json);
    json_object_end(json);
}

void statistics_write(struct json *json, const struct statistics_subject *subject,
                      const struct statistics *statistics)
{
    json_object_begin(json);
    write_subject(json, subject);
    write_counts(json, statistics);
    write_moments(json, statistics);
    write_histogram(json, statistics);
    json_object_end(json);
}
