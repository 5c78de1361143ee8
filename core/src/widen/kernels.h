/* The kernels of all types, each named as its type. */
#ifndef ZT_WIDEN_KERNELS_H
#define ZT_WIDEN_KERNELS_H

#include "widen/kernel.h"

/* small_floats.c */
extern const struct zt_widen_kernel zt_widen_f32, zt_widen_f16, zt_widen_bf16, zt_widen_f8_e4m3fn,
    zt_widen_f8_e5m2, zt_widen_f8_e4m3fnuz, zt_widen_f8_e5m2fnuz, zt_widen_f8_e8m0,
    zt_widen_f4_e2m1;

#endif
