/* The credentials file that AWS's tools keep: sections in square brackets, "name = value". */
#ifndef REMOTE_PROFILE_FILE_H
#define REMOTE_PROFILE_FILE_H

#include "remote/credentials.h"

/* Reads a section's key, secret and token. ZT_NOT_FOUND: no such section, or it has neither key nor
 * secret; ZT_ARGUMENT as for credential_make. `where` begins messages. */
enum zt_status profile_read(const char *where, struct zt_text file, const char *section,
                            struct credential *out_credential, struct zt_error *error);

#endif
