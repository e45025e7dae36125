/* SPDX-License-Identifier: MIT */
/* Kernels of the backend `loops`: n elements of dtype 0 (float) or 1 (_Float16), contiguous. */
#include <stdint.h>

#define EACH(EXPR)                                                                    \
    do {                                                                              \
        if (dtype == 0) {                                                             \
            typedef float T;                                                          \
            for (int64_t i = 0; i < n; i++) { EXPR; }                                 \
        } else {                                                                      \
            typedef _Float16 T;                                                       \
            for (int64_t i = 0; i < n; i++) { EXPR; }                                 \
        }                                                                             \
    } while (0)

#define AT(P) ((float)((const T *)(P))[i])
#define SET(P, V) (((T *)(P))[i] = (T)(V))

void relu_kernel(int64_t n, int32_t dtype, const void *x, void *y) {
    EACH(float v = AT(x); SET(y, v < 0.0f ? 0.0f : v));
}

void relu_backward_kernel(int64_t n, int32_t dtype, const void *x, const void *dy, void *dx) {
    EACH(SET(dx, AT(x) > 0.0f ? AT(dy) : 0.0f));
}

void scale_kernel(int64_t n, int32_t dtype, const void *x, void *y, double alpha) {
    EACH(SET(y, AT(x) * (float)alpha));
}

void add_kernel(int64_t n, int32_t dtype, const void *x, const void *y, void *z) {
    EACH(SET(z, AT(x) + AT(y)));
}
