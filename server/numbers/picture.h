/* Pictures of previews: cells become colours, and those an image in PNG (ISO/IEC 15948). */
#ifndef NUMBERS_PICTURE_H
#define NUMBERS_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "zt/status.h"

enum picture_map { PICTURE_VIRIDIS, PICTURE_GRAY, PICTURE_DIVERGING };

struct picture {
    const double *cells; /* rows x cols, both at least 1 */
    uint32_t rows;
    uint32_t cols;
    enum picture_map map;
    double low; /* the first and the last colour; values beyond them have the same */
    double high;
};

/* The least and the greatest of the cells that are finite. False if none is. */
bool picture_range(const double *cells, size_t count, double *out_low, double *out_high);

/* An image of 8 bits a pixel with a palette; cells that are not a number are transparent.
 * *out_bytes is freed with free(). ZT_NO_MEMORY. */
enum zt_status picture_encode(const struct picture *picture, uint8_t **out_bytes,
                              size_t *out_length, struct zt_error *error);

#endif
