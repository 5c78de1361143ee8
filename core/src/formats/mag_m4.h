/* .mag as magnetron 0.2 writes it: a header, a manifest in JSON, and tensors on pages of their own.
 */
#ifndef ZT_FORMATS_MAG_M4_H
#define ZT_FORMATS_MAG_M4_H

#include "zt/model.h"

enum zt_status mag_m4_open(struct zt_source *source, struct zt_model **out_model,
                           struct zt_error *error);

#endif
