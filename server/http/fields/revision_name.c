#include "http/fields/revision_name.h"

#include <string.h>

bool revision_name_split(struct zt_text raw, struct zt_text *out_model,
                         struct zt_text *out_revision)
{
    const char *at = raw.length > 0 ? memrchr(raw.bytes, '@', raw.length) : NULL;
    const size_t before = at != NULL ? (size_t)(at - raw.bytes) : 0;
    const size_t behind = at != NULL ? raw.length - before - 1 : 0;

    if (before == 0 || behind == 0 || memchr(at, '/', behind + 1) != NULL)
        return false;
    *out_model = (struct zt_text){raw.bytes, before};
    *out_revision = (struct zt_text){at + 1, behind};
    return true;
}
