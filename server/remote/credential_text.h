/* What makes a credential: texts that can be sent in a header field, and a time. */
#ifndef REMOTE_CREDENTIAL_TEXT_H
#define REMOTE_CREDENTIAL_TEXT_H

#include "remote/credentials.h"

/* Texts are borrowed; bytes NULL: not told. */
struct credential_texts {
    struct zt_text key;
    struct zt_text secret;
    struct zt_text token;
    struct zt_text expiration; /* "2026-01-31T23:59:59Z" */
};

/* ZT_ARGUMENT: one is missing, too long, or has characters that none has; `where` begins the
 * message. The message never has the text itself. */
enum zt_status credential_make(const char *where, const struct credential_texts *texts,
                               struct credential *out_credential, struct zt_error *error);

/* Answers of services: a JSON object with AccessKeyId, SecretAccessKey, Token and Expiration; the
 * XML of AssumeRoleWithWebIdentity. As credential_make. */
enum zt_status credential_from_json(const char *where, struct zt_text answer,
                                    struct credential *out_credential, struct zt_error *error);
enum zt_status credential_from_xml(const char *where, struct zt_text answer,
                                   struct credential *out_credential, struct zt_error *error);

/* The code of an error that a service answered in XML; "" if there is none. */
#define CREDENTIAL_CODE_SIZE 65
void credential_error_code(struct zt_text answer, char out_code[CREDENTIAL_CODE_SIZE]);

/* Whether all characters are visible ASCII, and there is one. */
bool credential_text_is_visible(struct zt_text text);
/* Without white space at both ends. */
struct zt_text credential_text_trim(struct zt_text text);

#endif
