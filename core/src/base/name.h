/* Normalisation form C of names, which must be valid UTF-8 (Unicode Standard Annex 15). */
#ifndef ZT_BASE_NAME_H
#define ZT_BASE_NAME_H

#include <stdbool.h>

#include "zt/status.h"

/* Whether name is in normalisation form C. ZT_NO_MEMORY. */
enum zt_status zt_name_is_nfc(struct zt_text name, bool *out_is_nfc);

/* Normalises name to form C. An ASCII name is returned unchanged, with *out_owned NULL; otherwise
 * *out_owned holds the normalised bytes, which the caller frees. ZT_NO_MEMORY. */
enum zt_status zt_name_compose(struct zt_text name, char **out_owned, struct zt_text *out_composed);

#endif
