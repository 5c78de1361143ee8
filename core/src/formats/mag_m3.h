/* .mag as magnetron 0.1.5 and 0.1.6 write it: a snapshot of four sections. */
#ifndef ZT_FORMATS_MAG_M3_H
#define ZT_FORMATS_MAG_M3_H

#include "zt/model.h"

/* Header, and the tag of the section that follows it. */
#define MAG_M3_HEAD_BYTES 36

/* Whether a file of version 100 is such a snapshot: the tag is there. head holds MAG_M3_HEAD_BYTES.
 */
bool mag_m3_probe(const uint8_t *head);

enum zt_status mag_m3_open(struct zt_source *source, struct zt_model **out_model,
                           struct zt_error *error);

#endif
