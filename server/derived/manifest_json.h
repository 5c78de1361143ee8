/* Manifests as JSON, in the same form for all formats and versions. */
#ifndef DERIVED_MANIFEST_JSON_H
#define DERIVED_MANIFEST_JSON_H

#include "base/json_write.h"
#include "base/memo.h"
#include "base/server.h"
#include "catalog/generation.h"
#include "http/fields/negotiate.h"

/* The part of a manifest to show. All members 0: everything. */
struct manifest_selection {
    struct zt_text prefix;         /* of objects' names; empty: all */
    const struct zt_text *matches; /* and any of these globs; none: all names */
    size_t match_count;
    unsigned fields;         /* bits of enum manifest_field; 0: all */
    bool without_attributes; /* omit the attributes of the model and of all objects, even if fields
                              * includes them */
    /* Adds the SHA-256 of stored bytes that this generation knows; NULL: none. */
    const struct generation *digested;
};

enum manifest_field {
    MANIFEST_SHAPE = 1,
    MANIFEST_FORMAT = 2,
    MANIFEST_ATTRIBUTES = 4,
    MANIFEST_COMPONENTS = 8
};

/* The file of a manifest, for hrefs and "source". `ztserve ls` has no generation. */
struct manifest_source {
    struct zt_text name;   /* the model's name */
    const char *path;      /* in the store; NULL: omit hrefs */
    const char *base_path; /* prefix of hrefs */
    bool is_joined;        /* made of several models; no single file is the model */
    uint64_t size_bytes;   /* total size of all files of a joined model */
    const char *etag;      /* NULL: omitted */
    int64_t modified_ns;
    bool is_undated; /* the modification time is unknown and omitted */
};

/* Parses a list of fields ("shape,format"). Returns false for an unknown or empty field. */
bool manifest_fields_parse(struct zt_text text, unsigned *out_fields);

/* Write a manifest, or one of its objects. Afterwards json->failed is set if out of memory, or if
 * the text would be out of proportion to the manifest; in the latter case json->too_long is set
 * too. selection may be NULL. */
void manifest_write(struct json *json, const struct zt_model *model,
                    const struct manifest_source *source,
                    const struct manifest_selection *selection);
void manifest_write_object(struct json *json, const struct zt_model *model,
                           const struct zt_object *object, const struct manifest_source *source,
                           unsigned fields);

/* Writes a time in UTC, in whole seconds: "2026-11-20T09:30:00Z". */
void manifest_write_time(struct json *json, int64_t time_ns);
/* The same with a key, of a time in seconds. */
void manifest_write_seconds(struct json *json, const char *key, int64_t time_s);

struct manifest_source manifest_source_of(const struct generation *generation);

/* --- whole manifests --- */

/* The whole manifest of a generation, compact and in a content coding. It is made once, in
 * server->manifests, and kept as long as the generation. */
struct manifest_text {
    char *bytes;
    size_t length;
    bool is_plain;            /* not coded */
    _Atomic(int64_t) read_ms; /* when it was made or last requested; a 304 needs only its length */
};

/* For server->manifests. Returns NULL if out of memory. */
struct memo *manifest_memo_new(void);

/* Returns a text, made or not, which the caller must release with memo_release; NULL if out of
 * memory. */
struct manifest_text *manifest_hold(struct memo *manifests, const struct generation *generation,
                                    enum coding coding);

/* Requests a held text. PENDING: a worker makes it; waiter is woken, and the caller must call
 * again. FAILED: ZT_LIMIT if it would be too long, as for manifest_write, or ZT_NO_MEMORY. Never
 * returns MAKE. */
enum memo_answer manifest_ask(struct server *server, struct manifest_text *text,
                              struct generation *generation, enum coding coding,
                              struct waiter *waiter, struct zt_error *error);

/* Returns the length of that text in bytes, if it has been made or can be written at once; else
 * 0. */
uint64_t manifest_length(struct memo *manifests, struct generation *generation, enum coding coding);

/* Frees the long plain texts that were last requested before this time (clock_coarse_ms). May be
 * called on any thread. */
void manifest_release_idle(struct memo *manifests, int64_t before_ms);

#endif
