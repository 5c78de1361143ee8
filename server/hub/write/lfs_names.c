#include "hub/write/lfs_names.h"

bool lfs_is_sha256(struct zt_text algorithm)
{
    return zt_text_is(algorithm, "sha256") || zt_text_is(algorithm, "sha_256");
}
