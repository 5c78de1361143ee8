/* What the library itself asks a decoder beyond zt/decode.h. */
#ifndef ZT_CODING_DECODER_H
#define ZT_CODING_DECODER_H

#include "zt/decode.h"

/* Stored bytes read so far. */
uint64_t zt_decoder_consumed(const struct zt_decoder *decoder);

#endif
