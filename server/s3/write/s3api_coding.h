/* Decodes an aws-chunked body, and verifies the signatures of its chunks and of its trailer. Knows
 * nothing about requests. */
#ifndef S3_WRITE_S3API_CODING_H
#define S3_WRITE_S3API_CODING_H

#include "http/fields/sigv4.h"
#include "zt/text.h"

enum s3api_coding_result {
    S3API_CODING_SOUND,
    S3API_CODING_STOPPED,   /* an output returned false */
    S3API_CODING_MALFORMED, /* the bytes are not aws-chunked */
    S3API_CODING_SIGNATURE, /* a signature is wrong or missing */
    S3API_CODING_NO_MEMORY
};

/* Where the decoded body goes. The texts are borrowed during the call; these functions return false
 * to stop. */
struct s3api_coding_outputs {
    bool (*take_data)(void *context, struct zt_text data);
    bool (*take_field)(void *context, struct zt_text name, struct zt_text value);
    void *context;
};

/* stated is borrowed; if it is verified, each chunk and the trailer must be signed. Returns NULL if
 * out of memory. */
struct s3api_coding *s3api_coding_new(const struct sigv4_body *stated);
/* Accepts NULL. */
void s3api_coding_free(struct s3api_coding *coding);

/* Decodes a piece. Small chunks of a piece are joined. After another result than SOUND it must not
 * be called again. */
enum s3api_coding_result s3api_coding_take(struct s3api_coding *coding, struct zt_text piece,
                                           const struct s3api_coding_outputs *outputs);

/* Returns the reason of S3API_CODING_MALFORMED, a static text. */
const char *s3api_coding_why(const struct s3api_coding *coding);
/* Returns true if the body is complete, with its last chunk and its trailer. */
bool s3api_coding_is_over(const struct s3api_coding *coding);

#endif
