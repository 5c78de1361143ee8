/* Manifests as JSON: one form for every format and version. */
#ifndef DERIVED_MANIFEST_JSON_H
#define DERIVED_MANIFEST_JSON_H

#include "base/json_write.h"
#include "catalog/generation.h"
#include "http/fields/negotiate.h"

/* Which part of a manifest to show. All members 0: everything. */
struct manifest_selection {
    struct zt_text prefix;         /* of objects' names; empty: any */
    const struct zt_text *matches; /* and any of these globs; none: any name */
    size_t match_count;
    unsigned fields;         /* bits of enum manifest_field; 0: all */
    bool without_attributes; /* of objects, whatever fields says, and of the model */
};

enum manifest_field {
    MANIFEST_SHAPE = 1,
    MANIFEST_FORMAT = 2,
    MANIFEST_ATTRIBUTES = 4,
    MANIFEST_COMPONENTS = 8
};

/* The file of a manifest: for hrefs and "source". `ztserve ls` has no generation. */
struct manifest_source {
    struct zt_text name;   /* the model's */
    const char *path;      /* in the store; NULL: writes no hrefs */
    const char *base_path; /* what hrefs begin with */
    bool is_joined;        /* of several files: none of them is the model */
    uint64_t size_bytes;   /* of all files together, if it is joined */
    const char *etag;      /* NULL: omitted */
    int64_t modified_ns;
    bool is_undated; /* nobody says when: omitted */
};

/* Parses a list of fields ("shape,format"). False for an unknown or empty field. */
bool manifest_fields_parse(struct zt_text text, unsigned *out_fields);

/* Write a manifest, or one of its objects. Afterwards json->failed is set if memory ran out, or if
 * the text would be out of proportion to the manifest; json->too_long is then set as well.
 * selection may be NULL. */
void manifest_write(struct json *json, const struct zt_model *model,
                    const struct manifest_source *source,
                    const struct manifest_selection *selection);
void manifest_write_object(struct json *json, const struct zt_model *model,
                           const struct zt_object *object, const struct manifest_source *source,
                           unsigned fields);

/* Writes a time in UTC, in whole seconds: "2026-11-20T09:30:00Z". */
void manifest_write_time(struct json *json, int64_t time_ns);

struct manifest_source manifest_source_of(const struct generation *generation);

/* The whole manifest of a generation, compact and in a coding; made once and kept with it. READY:
 * *out_text is borrowed from the generation. PENDING: a worker makes it; waiter is woken, and then
 * the caller asks again. TOO_LONG, FAILED: as for manifest_write. */
enum manifest_answer { MANIFEST_READY, MANIFEST_PENDING, MANIFEST_TOO_LONG, MANIFEST_FAILED };
enum manifest_answer manifest_ask(struct workers *workers, struct generation *generation,
                                  enum coding coding, struct waiter *waiter,
                                  struct zt_text *out_text);

/* The length of that text in bytes, if it is there or can be written at once; else 0. */
uint64_t manifest_length(struct workers *workers, struct generation *generation,
                         enum coding coding);

#endif
