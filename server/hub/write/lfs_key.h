/* The secret by which a server recognizes the permits that it has given out (lfs_permit.h). */
#ifndef HUB_WRITE_LFS_KEY_H
#define HUB_WRITE_LFS_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"

#define LFS_KEY_BYTES 32

/* The key in the state folder, which is made if there is none, so that permits hold over restarts
 * and for all servers with that folder; a new one if that folder cannot be used. At start. */
void lfs_key_load(const struct config *config, uint8_t out_key[LFS_KEY_BYTES]);

/* HMAC-SHA256 (RFC 2104) with a key of at most 64 bytes. False: out of memory. */
bool lfs_hmac(const uint8_t *key, size_t key_length, const void *bytes, size_t length,
              uint8_t out_code[32]);

#endif
