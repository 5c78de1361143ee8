/* The header fields that clients give their objects, and get back with them: x-amz-meta-*,
 * Content-Type, Cache-Control and others. They are kept in memory and in a ledger of the state
 * folder, by path and version: a file that changes loses them. This server alone knows them, also
 * if others share its store. If they need more memory than S3API_META_BYTES, the fields that were
 * not used for the longest time are forgotten. From any thread. */
#ifndef S3_S3API_META_H
#define S3_S3API_META_H

#include "http/exchange/request.h"
#include "store/store.h"

#define S3API_META_BYTES ((size_t)64 << 20)
/* S3's limit for names and values of x-amz-meta-*; and of the other fields together. */
#define S3API_META_MAX 2048
/* The number of fields of one object. */
#define S3API_META_FIELDS_MAX 32

/* --- the fields of one object: a text of names and values, each followed by LF, which no value
 * contains; NULL: none --- */

/* Reads the fields of a request that writes an object; the caller frees them. Returns false if it
 * has replied: MetadataTooLarge. */
bool s3api_meta_read(struct request *request, struct zt_text key, char **out_fields);

/* Returns true if a text that was stored has this form. */
bool s3api_meta_is_sound(const char *fields);

/* Adds the fields of an object to the reply. They replace those that the reply has already. */
void s3api_meta_reply(struct request *request, const char *path,
                      const struct file_identity *identity);

/* --- the table --- */

struct s3api_meta;

/* Reads the ledger. Returns NULL if out of memory. */
struct s3api_meta *s3api_meta_new(const struct config *config);
/* Accepts NULL. */
void s3api_meta_free(struct s3api_meta *meta);

/* Keeps the fields of a version, and forgets the earlier version. Fields that cannot be saved are
 * kept until the server ends. On a worker. */
void s3api_meta_keep(struct s3api_meta *meta, const char *path,
                     const struct file_identity *identity, const char *fields);

/* Forgets the fields of an object that was removed. On a worker. */
void s3api_meta_forget(struct s3api_meta *meta, const char *path);

/* Returns a copy of the fields of a version, which the caller frees; NULL: it has none. */
char *s3api_meta_find(struct s3api_meta *meta, const char *path,
                      const struct file_identity *identity);

#endif
