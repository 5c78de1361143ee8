/* The lattices of GGUF's iq types: the points of their codes. */
#ifndef ZT_WIDEN_IQ_GRIDS_H
#define ZT_WIDEN_IQ_GRIDS_H

#include <stdint.h>

/* A point of eight elements: two bits for each, the first element's lowest. In the iq2 types 0, 1
 * and 2 mean 8, 25 and 43, in the iq1 types for -1, 0 and 1. */
extern const uint16_t zt_iq2_xxs_grid[256];
extern const uint16_t zt_iq2_xs_grid[512];
extern const uint16_t zt_iq2_s_grid[1024];
extern const uint16_t zt_iq1_grid[2048];

/* A point of four elements: four bits for each, the first element's lowest. */
extern const uint16_t zt_iq3_xxs_grid[256];
extern const uint16_t zt_iq3_s_grid[512];

#endif
