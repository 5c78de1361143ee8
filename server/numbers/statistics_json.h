/* Statistics as JSON: the same document from the server and from the program. */
#ifndef NUMBERS_STATISTICS_JSON_H
#define NUMBERS_STATISTICS_JSON_H

#include "base/json_write.h"
#include "numbers/computation.h"

struct statistics_subject {
    const struct zt_model *model;
    const struct zt_object *object;
    const struct zt_component *component;
    const struct zt_slice *slice; /* NULL: all of it */
};

/* Writes an object. Numbers that are not finite become null. */
void statistics_write(struct json *json, const struct statistics_subject *subject,
                      const struct statistics *statistics);

/* A number with as many digits as tell it from every other double; null if it is not finite. */
void number_write(struct json *json, double value);
/* The same with the digits of a float. */
void number_write_float(struct json *json, float value);

#endif
