/* Unicode normalisation of names. The only user of utf8proc. */
#ifndef ZT_BASE_NAME_H
#define ZT_BASE_NAME_H

#include <stdbool.h>

#include "zt/status.h"

/* Whether valid UTF-8 is in normalisation form C. ZT_NO_MEMORY. */
enum zt_status zt_name_is_nfc(struct zt_text name, bool *out_is_nfc);

/* Gives valid UTF-8 in normalisation form C: name itself where it is that already, else new bytes,
 * which *out_owned is set to, to be freed by the caller. *out_owned is NULL otherwise.
 * ZT_NO_MEMORY. */
enum zt_status zt_name_compose(struct zt_text name, char **out_owned, struct zt_text *out_composed);

#endif
