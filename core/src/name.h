/* Unicode normalisation of names. The only user of utf8proc. */
#ifndef ZT_NAME_H
#define ZT_NAME_H

#include <stdbool.h>

#include "zt/status.h"

/* Whether valid UTF-8 is in normalisation form C. ZT_NO_MEMORY. */
enum zt_status zt_name_is_nfc(struct zt_text name, bool *out_is_nfc);

#endif
