/* SHA-256s found by reading: of the stored bytes of each component, and of their pieces of one
 * size.
 *
 * A component that was verified (or that a run over all components has read, with or without a
 * digest) is read once more in the background, behind everything that a request waits for; what is
 * found is kept with the generation and outlives the process in the state folder. So blobs have
 * names, and a range that is exactly one piece has its Content-Digest without being read.
 * limits.digest_piece_bytes is the size; 0 turns it off. */
#ifndef VERIFY_FOUND_DIGESTS_H
#define VERIFY_FOUND_DIGESTS_H

#include "base/server.h"
#include "catalog/generation.h"

/* A component's stored bytes are to be read in the background, if they were not already. From any
 * thread. */
void found_digests_want(struct server *server, struct generation *generation, uint32_t component);

/* The stored bytes' SHA-256, from whoever has just hashed them; where pieces are to be known too,
 * they are read. Nothing of a component that is not known to be sound. From any thread. */
void found_digests_learn(struct server *server, struct generation *generation, uint32_t component,
                         const uint8_t sha256[32]);

/* What is known now; false where nothing is. Never waits. Of a corrupt component nothing is known.
 */
bool found_digest_whole(const struct generation *generation, uint32_t component,
                        uint8_t out_sha256[32]);
/* What the file itself states over exactly the stored bytes, right or not. */
bool found_digest_stated(const struct generation *generation, uint32_t component,
                         uint8_t out_sha256[32]);
/* Of exactly one piece of the stored bytes: first is a multiple of the size, length the size or
 * what is left. */
bool found_digest_piece(const struct generation *generation, uint32_t component, uint64_t first,
                        uint64_t length, uint8_t out_sha256[32]);

#endif
