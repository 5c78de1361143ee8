/* What Git LFS calls things: objects by their SHA-256. */
#ifndef HUB_WRITE_LFS_NAMES_H
#define HUB_WRITE_LFS_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "zt/text.h"

/* 64 hex digits and NUL. */
#define LFS_OID_SIZE 65

/* Whether a text names the only algorithm: "sha256", or "sha_256" as npm's client has it. */
bool lfs_is_sha256(struct zt_text algorithm);

/* Pairs of lower-case hex digits; half as many bytes. */
bool lfs_hex_parse(struct zt_text hex, uint8_t *out_bytes);

/* 64 lower-case hex digits. */
bool lfs_oid_parse(struct zt_text text, uint8_t out_sha256[32]);
void lfs_oid_print(const uint8_t sha256[32], char out_oid[LFS_OID_SIZE]);

#endif
