/* JSON texts that accompany models: settings, vocabularies, indices. */
#ifndef ZT_JSON_TEXT_H
#define ZT_JSON_TEXT_H

#include "zt/source.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* The longest text that zt_json_check reads, in bytes: it takes so much memory. */
#define ZT_JSON_TEXT_MAX ((uint64_t)128 << 20)

/* Whether the bytes are one JSON value (RFC 8259), in UTF-8, of any kind, with white space around
 * it. NaN, Infinity and -Infinity are accepted, as Python writes and reads them. ZT_INVALID with
 * the offset of the byte at fault, also where values are nested more than 64 deep; ZT_LIMIT for a
 * longer text; ZT_IO, ZT_NO_MEMORY. */
enum zt_status zt_json_check(struct zt_source *source, struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
