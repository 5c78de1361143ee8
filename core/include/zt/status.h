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
    /* The bytes break a rule of their format: zt_error.rule names the rule and zt_error.offset the
     * place. */
    ZT_INVALID,
    /* The bytes do not match the digest that the file states, or an encoded stream does not
     * decode. */
    ZT_CORRUPT,
    /* The file is well formed, but the library cannot check or decode it: an unknown format, digest
     * algorithm, encoding or type. */
    ZT_UNSUPPORTED,
    /* A bound of the library, or one that the caller set, would be exceeded. */
    ZT_LIMIT,
    /* No object, component or file has that name. */
    ZT_NOT_FOUND,
    /* The call itself is wrong, for example a range outside the component. */
    ZT_ARGUMENT,
    ZT_NO_MEMORY,
    /* The source could not be read; zt_error.os_error holds errno. */
    ZT_IO,
    /* A zTensor 2 container without a manifest: valid, but it only holds data of other models and
     * is not a model itself. */
    ZT_DATA_SHARD,
    /* The bytes are elsewhere, and cannot be had now; later they may. */
    ZT_UNAVAILABLE,
    /* The bytes are remote, and this version of them no longer exists: readers must start again. */
    ZT_STALE
};

/* zt_error.offset if no position in the file applies. */
#define ZT_NO_OFFSET UINT64_MAX

/* The longest name that zTensor 2 allows. Other formats allow longer names, which are truncated
 * here and nowhere else. */
#define ZT_ERROR_NAME_MAX 1024

struct zt_error {
    enum zt_status status;
    int os_error;
    /* Static text "<format> §<section> <Rule>" as listed in docs/rules/, or NULL if no rule
     * applies. */
    const char *rule;
    /* Absolute position in the file in bytes, or ZT_NO_OFFSET. */
    uint64_t offset;
    /* The reason: one line of UTF-8, without paths. */
    char message[256];
    /* Names of the object and component at fault, in UTF-8; empty if none applies. A name may
     * contain U+0000, so use the lengths. */
    char object[ZT_ERROR_NAME_MAX + 1];
    char component[ZT_ERROR_NAME_MAX + 1];
    size_t object_length;
    size_t component_length;
    /* Whether an object is at fault. An empty name is not a sign of absence, because objects may
     * have one. */
    bool has_object;
    /* With ZT_UNAVAILABLE: trying again within this time is of no use. 0: unknown. */
    uint32_t pause_ms;
};

/* Resets error: ZT_OK, no rule, no offset, empty texts, no pause. */
void zt_error_clear(struct zt_error *error);

/* Fills error, which may be NULL, and returns status, so that a check is one statement:
 *     if (offset % 64 != 0) return zt_fail(error, ZT_INVALID, "zt1 §4 BlobAlignment", at, "…");
 * status must not be ZT_OK; rule is static text or NULL; offset is absolute or ZT_NO_OFFSET. All
 * other fields of error are cleared; zt_error_at sets the names of object and component. */
enum zt_status zt_fail(struct zt_error *error, enum zt_status status, const char *rule,
                       uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* zt_fail with ZT_NO_MEMORY and the message "no memory for <purpose>". */
enum zt_status zt_fail_memory(struct zt_error *error, const char *purpose);

/* Sets the names of the object (bytes NULL: none) and the component (may be empty) at fault. error
 * may be NULL. Names of more than ZT_ERROR_NAME_MAX bytes are truncated at a character. */
void zt_error_at(struct zt_error *error, struct zt_text object, struct zt_text component);

/* The name of a status, such as "invalid": lower case, and the same in every version. */
const char *zt_status_name(enum zt_status status);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
