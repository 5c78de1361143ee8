/* The kernels of all types, each named as its type. */
#ifndef ZT_WIDEN_KERNELS_H
#define ZT_WIDEN_KERNELS_H

#include "widen/kernel.h"

/* small_floats.c */
extern const struct zt_widen_kernel zt_widen_f32, zt_widen_f16, zt_widen_bf16, zt_widen_f8_e4m3fn,
    zt_widen_f8_e5m2, zt_widen_f8_e4m3fnuz, zt_widen_f8_e5m2fnuz, zt_widen_f8_e8m0,
    zt_widen_f4_e2m1;

/* small_integers.c */
extern const struct zt_widen_kernel zt_widen_i4, zt_widen_u4, zt_widen_i2, zt_widen_u2;

/* legacy_blocks.c */
extern const struct zt_widen_kernel zt_widen_q4_0, zt_widen_q4_1, zt_widen_q5_0, zt_widen_q5_1,
    zt_widen_q8_0, zt_widen_q1_0, zt_widen_q2_0, zt_widen_mxfp4, zt_widen_nvfp4;

/* k_blocks.c */
extern const struct zt_widen_kernel zt_widen_q2_k, zt_widen_q3_k, zt_widen_q4_k, zt_widen_q5_k,
    zt_widen_q6_k, zt_widen_tq1_0, zt_widen_tq2_0;

/* iq_blocks.c */
extern const struct zt_widen_kernel zt_widen_iq2_xxs, zt_widen_iq2_xs, zt_widen_iq2_s,
    zt_widen_iq3_xxs, zt_widen_iq3_s, zt_widen_iq1_s, zt_widen_iq1_m, zt_widen_iq4_nl,
    zt_widen_iq4_xs;

#endif
