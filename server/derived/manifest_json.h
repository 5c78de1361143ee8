/* Manifests as JSON: one shape for every format and version (http-api, section 3). */
#ifndef DERIVED_MANIFEST_JSON_H
#define DERIVED_MANIFEST_JSON_H

#include "base/json_write.h"
#include "catalog/generation.h"
#include "http/fields/negotiate.h"

/* What of a manifest is shown. Everything by default (all members 0). */
struct manifest_selection {
    struct zt_text prefix;         /* object names that begin so; empty: all */
    const struct zt_text *matches; /* and match one of these globs; none: all */
    size_t match_count;
    unsigned fields; /* bits of enum manifest_field; 0: all */
};

enum manifest_field {
    MANIFEST_SHAPE = 1,
    MANIFEST_FORMAT = 2,
    MANIFEST_ATTRIBUTES = 4,
    MANIFEST_COMPONENTS = 8
};

/* Who the manifest is of: for hrefs and "source". `ztserve ls` has no server and no generation. */
struct manifest_source {
    struct zt_text name; /* the model's */
    const char *path;    /* in the store; NULL: no hrefs (ls) */
    const char *etag;    /* NULL: left out */
    int64_t modified_ns;
};

/* Reads the text of a query ("shape,format"). False when a field is not known, or there is none. */
bool manifest_fields_parse(struct zt_text text, unsigned *out_fields);

/* After it json->failed when memory is out, or the text would be absurdly larger than the manifest
 * it shows. */
void manifest_write(struct json *json, const struct zt_model *model,
                    const struct manifest_source *source,
                    const struct manifest_selection *selection);
void manifest_write_object(struct json *json, const struct zt_model *model,
                           const struct zt_object *object, const struct manifest_source *source,
                           unsigned fields);

/* A time as clients are told it: UTC, whole seconds ("2026-11-20T09:30:00Z"). */
void manifest_write_time(struct json *json, int64_t time_ns);

/* The whole manifest of a generation, compact and in a coding, made once and kept with it. READY:
 * *out_text is borrowed from the generation. PENDING: it is being made by a worker, waiter will be
 * woken; ask again then. FAILED: see manifest_write. */
enum manifest_answer { MANIFEST_READY, MANIFEST_PENDING, MANIFEST_TOO_LONG, MANIFEST_FAILED };
enum manifest_answer manifest_ask(struct workers *workers, struct generation *generation,
                                  enum coding coding, struct waiter *waiter,
                                  struct zt_text *out_text);

#endif
