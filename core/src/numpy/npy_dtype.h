/* The dtypes that NumPy's headers name in "descr". */
#ifndef ZT_NUMPY_NPY_DTYPE_H
#define ZT_NUMPY_NPY_DTYPE_H

#include <stdbool.h>

#include "zt/dtype.h"
#include "zt/text.h"

struct npy_dtype {
    enum zt_dtype dtype;
    enum zt_logical logical; /* complex numbers, or ZT_LOGICAL_NONE */
    bool is_big_endian;      /* and words are wider than a byte */
};

/* Reads every text that np.dtype takes for numbers and bools of a fixed size: "<f4", "|f4", "f",
 * "?", "float32", "double". The byte orders < = | and none mean little-endian, as they do to NumPy
 * on such machines. False for any other text. */
bool npy_dtype_read(struct zt_text descr, struct npy_dtype *out_dtype);

#endif
