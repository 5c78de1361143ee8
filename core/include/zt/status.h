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
    /* The bytes break a rule of their format: zt_error.rule names it, zt_error.offset is where. */
    ZT_INVALID,
    /* A digest that the file states is not that of the bytes, or an encoded stream does not
     * decode. */
    ZT_CORRUPT,
    /* Well formed, but the library cannot check or decode it: an unknown digest algorithm, encoding
     * or type. */
    ZT_UNSUPPORTED,
    /* A bound of the library, or one that the caller set, would be exceeded. */
    ZT_LIMIT,
    /* There is no object, component or file of that name. */
    ZT_NOT_FOUND,
    /* The request itself is wrong (a range outside the component). */
    ZT_ARGUMENT,
    ZT_NO_MEMORY,
    /* The source could not be read; zt_error.os_error holds errno. */
    ZT_IO,
    /* A zTensor 2 container without a manifest: valid, but it holds data of other models and is no
     * model itself. */
    ZT_DATA_SHARD
};

/* zt_error.offset if no position in the file applies. */
#define ZT_NO_OFFSET UINT64_MAX

/* The longest name that zTensor 2 allows. Older files may have longer ones: errors, and only
 * errors, cut them. */
#define ZT_ERROR_NAME_MAX 1024

struct zt_error {
    enum zt_status status;
    int os_error;
    /* Static text "<format> §<section> <Rule>" as listed in docs/rules/, or NULL if no rule
     * applies. */
    const char *rule;
    /* Absolute position in the file, or ZT_NO_OFFSET. */
    uint64_t offset;
    /* What is wrong: one line of UTF-8, without paths. */
    char message[256];
    /* Names of the object and component at fault, as UTF-8; empty if none applies. A name may
     * contain U+0000: the lengths count. */
    char object[ZT_ERROR_NAME_MAX + 1];
    char component[ZT_ERROR_NAME_MAX + 1];
    size_t object_length;
    size_t component_length;
    /* Whether an object is at fault: the name of an object may be empty. */
    bool has_object;
};

/* Resets error: ZT_OK, no rule, no offset, empty texts. */
void zt_error_clear(struct zt_error *error);

/* Fills error, which may be NULL, and returns status, so that a rule is one statement:
 *     if (offset % 64 != 0) return zt_fail(error, ZT_INVALID, "zt1 §4 BlobAlignment", at, "…");
 * status is not ZT_OK; rule is static text or NULL. The names of object and component are cleared:
 * zt_error_at sets them. */
enum zt_status zt_fail(struct zt_error *error, enum zt_status status, const char *rule,
                       uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* ZT_NO_MEMORY with the message "no memory for <purpose>". */
enum zt_status zt_fail_memory(struct zt_error *error, const char *purpose);

/* Names the object (bytes NULL: none) and the component (may be empty) that a failure is about.
 * Names that are too long are cut between characters. */
void zt_error_at(struct zt_error *error, struct zt_text object, struct zt_text component);

/* The name of a status in lower case, which never changes, such as "invalid". */
const char *zt_status_name(enum zt_status status);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
