/* SHA-256 digests of the files of views. They are computed in the background, as for stored files,
 * and shared by all APIs. */
#ifndef VIEWS_VIEW_DIGEST_H
#define VIEWS_VIEW_DIGEST_H

#include "digests/file_hashes.h"
#include "views/model_view.h"

#define VIEW_TEXT_SIZE 160

/* Writes a text that represents the bytes of a part or the index: the model's manifest and the
 * objects in it. source is the text that represents the model's bytes. */
void view_text(const struct model_view *view, uint32_t part, const char *source,
               char out_text[VIEW_TEXT_SIZE]);

/* Finds the digest of a part or the index. Returns false if it is unknown; is_wanted: it is then
 * computed, unless that would fetch many bytes. Never waits; may be called on any thread. */
bool view_digest_find(struct server *server, struct model_view *view, uint32_t part, bool is_wanted,
                      uint8_t out_sha256[SHA256_BYTES]);

#endif
