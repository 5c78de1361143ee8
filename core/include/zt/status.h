/* Outcomes of the core library.
 *
 * Every function that can fail returns an enum zt_status and fills a struct zt_error that the
 * caller owns. Outputs are written only on success. The library never logs. */
#ifndef ZT_STATUS_H
#define ZT_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "zt/text.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

enum zt_status {
    ZT_OK = 0,
    /* The bytes break a rule of their format; zt_error.rule names it and zt_error.offset says
     * where. */
    ZT_INVALID,
    /* A digest that the file states is not the digest of the bytes, or an encoded stream does not
     * decode. */
    ZT_CORRUPT,
    /* Well formed, but of a kind this library cannot judge or decode: an unknown digest algorithm,
     * encoding or type. */
    ZT_UNSUPPORTED,
    /* It would exceed a bound of the library or one that the caller set. */
    ZT_LIMIT,
    /* No object, component or file of that name. */
    ZT_NOT_FOUND,
    /* The caller's own request makes no sense (a range outside the component). */
    ZT_ARGUMENT,
    ZT_NO_MEMORY,
    /* The source could not be read; zt_error.os_error holds errno. */
    ZT_IO,
    /* A zTensor 2 container without a manifest: valid, but data of another model, not a model
     * itself. */
    ZT_DATA_SHARD
};

/* "No position in the file applies." */
#define ZT_NO_OFFSET UINT64_MAX

/* The longest name zTensor 2 allows; longer names of older files are cut here in errors, never
 * elsewhere. */
#define ZT_ERROR_NAME_MAX 1024

struct zt_error {
    enum zt_status status;
    int os_error;
    /* Static text "<format> §<section> <Rule>" as docs/rules/ lists them, or NULL where no rule
     * applies. */
    const char *rule;
    /* Absolute position in the file, or ZT_NO_OFFSET. */
    uint64_t offset;
    /* What is wrong, one line, UTF-8, without a path of the disk. */
    char message[256];
    /* Names of the object and component at fault, as UTF-8 text; empty where none applies. A name
     * may hold U+0000: the lengths count. */
    char object[ZT_ERROR_NAME_MAX + 1];
    char component[ZT_ERROR_NAME_MAX + 1];
    size_t object_length;
    size_t component_length;
    /* Whether an object is at fault: an empty name may be that of one. */
    bool has_object;
};

/* Starts an error anew: ZT_OK, no rule, no offset, empty texts. */
void zt_error_clear(struct zt_error *error);

/* Fills error (which may be NULL) and returns status, so that a rule is one statement:
 *     if (offset % 64 != 0) return zt_fail(error, ZT_INVALID, "zt1 §4 BlobAlignment", at, "…");
 * rule must be static text or NULL. Object and component names are cleared; zt_error_at sets them.
 */
enum zt_status zt_fail(struct zt_error *error, enum zt_status status, const char *rule,
                       uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* ZT_NO_MEMORY with the message "no memory for <purpose>". */
enum zt_status zt_fail_memory(struct zt_error *error, const char *purpose);

/* Names the object (bytes NULL: none), and the component (may be empty), that a failure is about;
 * cut at a character's border. */
void zt_error_at(struct zt_error *error, struct zt_text object, struct zt_text component);

/* Stable lower-case word for a status, e.g. "invalid". */
const char *zt_status_name(enum zt_status status);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
