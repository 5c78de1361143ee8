/* XML as S3 writes it: its namespace, keys, times and entity tags. The elements themselves are
 * written with base/xml_write.h. */
#ifndef S3_S3API_XML_H
#define S3_S3API_XML_H

#include <time.h>

#include "base/xml_write.h"
#include "http/exchange/request.h"
#include "store/store.h"

/* The namespace of every document except errors. */
#define S3API_NAMESPACE "http://s3.amazonaws.com/doc/2006-03-01/"

/* --- entity tags --- */

/* Room for the quotes and the NUL. */
#define S3API_ETAG_SIZE 40

/* Writes the entity tag of a stored file on this face, the same in every response and list:
 * "\"<32 hex digits>-1\"". Without "-1", the form of a multipart upload, clients would take the
 * digits for the MD5. Derived from the path and identity alone, so that lists open no files. */
void s3api_etag(const char *path, const struct file_identity *identity,
                char out_etag[S3API_ETAG_SIZE]);

/* The tag of an empty object that marks a folder, which is not stored. */
#define S3API_FOLDER_ETAG "\"d41d8cd98f00b204e9800998ecf8427e\""

/* --- elements --- */

/* Writes the declaration, and opens the document's element in S3's namespace. */
void s3api_xml_begin(struct xml_writer *xml, const char *name);

/* Writes an element with a key, a prefix or a delimiter. is_url: percent-encoded, for requests with
 * encoding-type=url; slashes stay. XML cannot represent some characters otherwise. */
void s3api_xml_key(struct xml_writer *xml, const char *name, struct zt_text key, bool is_url);

/* Writes a common prefix of a list. */
void s3api_xml_prefix(struct xml_writer *xml, struct zt_text prefix, bool is_url);

/* Writes an element with a time in whole seconds, as in HEAD: "2026-11-22T12:44:36.000Z". */
void s3api_xml_time(struct xml_writer *xml, const char *name, time_t time);

/* Writes an element that names the owner of everything, as "Owner" or "Initiator". */
void s3api_xml_owner(struct xml_writer *xml, const char *name);

/* --- replies --- */

/* Makes an empty text that the request keeps until its last byte is sent. Returns NULL if it has
 * replied with a problem. */
struct xml_writer *s3api_xml_new(struct request *request);

/* Replies with the finished text, or with a problem if writing it failed. */
enum outcome s3api_xml_reply(struct request *request, unsigned status,
                             const struct xml_writer *xml);

#endif
