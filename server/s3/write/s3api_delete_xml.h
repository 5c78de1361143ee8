/* The body of DeleteObjects: pure, and bounded. With or without a namespace. */
#ifndef S3_WRITE_S3API_DELETE_XML_H
#define S3_WRITE_S3API_DELETE_XML_H

#include <stdint.h>

#include "zt/status.h"
#include "zt/text.h"

/* S3's limit. */
#define S3API_DELETE_MAX 1000

struct s3api_named_object {
    char *key;
    char *etag;         /* as sent; NULL: none */
    bool has_version;   /* a version other than "null" */
    bool has_condition; /* another condition than the tag */
};

/* Zeroed: none. */
struct s3api_delete_list {
    struct s3api_named_object *objects;
    size_t count;
    size_t capacity;
    bool is_quiet;
};

/* Returns ZT_INVALID if the document is not a list of 1 to S3API_DELETE_MAX keys; ZT_NO_MEMORY. The
 * caller frees the list in any case. */
enum zt_status s3api_delete_xml_read(struct zt_text document, struct s3api_delete_list *out_list,
                                     struct zt_error *error);
void s3api_delete_list_free(struct s3api_delete_list *list);

#endif
