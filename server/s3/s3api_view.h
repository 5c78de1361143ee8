/* Views as objects (views/model_view.h): beside a model "m.zt" there is an object
 * "m.safetensors", or "m-00001-of-00002.safetensors", …, and "m.safetensors.index.json", unless
 * stored files have these names. */
#ifndef S3_S3API_VIEW_H
#define S3_S3API_VIEW_H

#include "base/memo.h"
#include "s3/s3api_xml.h"
#include "views/model_view.h"

/* The extensions of files that can have views, the preferred one first. NULL past the end. */
const char *s3api_view_extension(unsigned index);

/* Returns the memo for struct server. NULL if out of memory. */
struct memo *s3api_views_new(void);

/* Returns the view of a stored file, from memory if it was made before. The file must be the one
 * that the catalog has for its name. With a reference; NULL if there is none now. On a worker; may
 * open the file. */
struct model_view *s3api_view_get(struct server *server, const char *path,
                                  const struct file_identity *identity);

/* Finds the view to which a key belongs that is not a stored file's. With a reference; NULL if
 * there is none, or hub.views is off. On a worker; may open the model. */
struct model_view *s3api_view_find(struct server *server, struct zt_text key, uint32_t *out_part);

/* --- the files of a view --- */

/* Returns the number of files. */
uint32_t s3api_view_count(const struct model_view *view);
/* Returns the part of file number i: after the last part, its index. */
uint32_t s3api_view_part(const struct model_view *view, uint32_t i);
uint64_t s3api_view_length(const struct model_view *view, uint32_t part);
/* Writes the key, and returns its length. */
size_t s3api_view_key(const struct model_view *view, uint32_t part,
                      char out_key[VIEW_NAME_SIZE + MODEL_PATH_SIZE]);
/* Writes the tag of the file's bytes, of the form of s3api_etag. */
void s3api_view_etag(const struct model_view *view, uint32_t part, char out_etag[S3API_ETAG_SIZE]);

#endif
