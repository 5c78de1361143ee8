#include "client/upload_metadata.h"

#include <assert.h>
#include <string.h>

#include "base/base64.h"

void upload_metadata_write(const char *name, char out_field[UPLOAD_METADATA_SIZE])
{
    assert(strlen(name) < WEB_TARGET_SIZE);
    strcpy(out_field, "model ");
    zt_base64_write(out_field + strlen(out_field), name, strlen(name), ZT_BASE64);
}
