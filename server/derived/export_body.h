/* The JSON body of an export: one member for each parameter of the query, with the same meaning,
 * and the members objects, have and base. A pure function of the bytes, since workers read long
 * bodies. */
#ifndef DERIVED_EXPORT_BODY_H
#define DERIVED_EXPORT_BODY_H

#include "base/glob.h"
#include "derived/export_plan.h"

/* Room for 65,536 digests with indentation, and for as many names of ordinary length. */
#define EXPORT_BODY_MAX ((size_t)8 << 20)
/* The maximum number of digests, and of names. */
#define EXPORT_LIST_MAX ((size_t)65536)
#define EXPORT_BODY_WHY 400

struct export_body {
    /* All members of the query but the target and the base; lists is owned. Texts are borrowed from
     * this structure, which must not move. */
    struct export_query query;
    struct zt_text format; /* "safetensors" by default */
    struct zt_text base;   /* empty: none */
    bool is_out_of_memory;
    char why[EXPORT_BODY_WHY]; /* the mistake, which begins with a JSON pointer if there is one */
    struct json_t *json;
    struct zt_text matches[GLOB_SET_MAX];
    struct axis_rule rules[GLOB_SET_MAX];
    char numbers[GLOB_SET_MAX][24]; /* axes that are written as numbers, as text */
};

/* Reads a body. Returns false with the reason in `why`, or if out of memory. The caller zeroes
 * *body before, and clears it after both results. */
bool export_body_read(struct zt_text text, struct export_body *body);
void export_body_clear(struct export_body *body);

#endif
