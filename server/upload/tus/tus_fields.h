/* The header fields of tus 1.0.0 (https://tus.io/protocols/resumable-upload) as pure functions over
 * their texts. */
#ifndef UPLOAD_TUS_TUS_FIELDS_H
#define UPLOAD_TUS_TUS_FIELDS_H

#include <stdbool.h>

#include "zt/digest.h"
#include "zt/text.h"

/* Parses a number of bytes. Returns false if it has other characters than digits, or more than 63
 * bits. */
bool tus_number_parse(const char *text, uint64_t *out_number);

enum tus_metadata { TUS_METADATA_FOUND, TUS_METADATA_ABSENT, TUS_METADATA_MALFORMED };

/* Reads Upload-Metadata (pairs of a key and base64, separated by commas) and finds one key's value,
 * which is copied with a NUL after it. MALFORMED also if the value does not fit or contains a NUL,
 * or if the key occurs twice. */
enum tus_metadata tus_metadata_find(const char *field, const char *key, char *out_value,
                                    size_t size);

/* Returns true if Upload-Metadata names a file by its path, and no model. */
bool tus_metadata_is_of_file(const char *field);

enum tus_checksum { TUS_CHECKSUM_KNOWN, TUS_CHECKSUM_UNKNOWN, TUS_CHECKSUM_MALFORMED };

/* Reads Upload-Checksum: "sha1 <base64>". UNKNOWN: the algorithm is not supported. */
enum tus_checksum tus_checksum_parse(const char *field, struct zt_digest *out_digest);

enum tus_concat { TUS_CONCAT_PART, TUS_CONCAT_FINAL, TUS_CONCAT_MALFORMED };

/* Reads Upload-Concat: "partial", or "final;" and URLs separated by blanks. *out_urls is set for
 * FINAL only: for tus_concat_next. */
enum tus_concat tus_concat_parse(const char *field, const char **out_urls);

/* Splits off the next URL. It may be absolute, with any host, because proxies give servers other
 * names; or relative to the path at which uploads are created. *out_id should be an upload's id; it
 * is empty if the URL does not lead to an upload. Returns false at the end. */
bool tus_concat_next(const char **at, struct zt_text *out_id);

#endif
