/* The field Upload-Metadata of tus (its section "Creation"). */
#ifndef CLIENT_UPLOAD_METADATA_H
#define CLIENT_UPLOAD_METADATA_H

#include "client/web_address.h"

#define UPLOAD_METADATA_SIZE (2 * WEB_TARGET_SIZE)

/* The pair of "model" and a name, which is shorter than WEB_TARGET_SIZE. */
void upload_metadata_write(const char *name, char out_field[UPLOAD_METADATA_SIZE]);

#endif
