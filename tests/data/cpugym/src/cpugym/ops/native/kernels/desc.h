/* SPDX-License-Identifier: MIT */
/* The tensor record, return codes, and a loop over the elements of contiguous tensors. */
#ifndef CPUGYM_DESC_H
#define CPUGYM_DESC_H
#include <stdint.h>

typedef struct {
    uint64_t ptr;
    int32_t ndim;
    int64_t shape[5];
    int64_t strides[5]; /* elements */
    int32_t dtype;      /* 0 float, 1 _Float16 */
} TensorDesc;

enum { RC_OK = 0, RC_DTYPE = -2, RC_LAUNCH = -3, RC_NULL = -5 };

static inline int64_t numel(const TensorDesc *t) {
    int64_t n = 1;
    for (int i = 0; i < t->ndim; i++) n *= t->shape[i];
    return n;
}

/* BODY uses `i` and the element type `T`. */
#define FOR_EACH(desc, BODY)                                                          \
    do {                                                                              \
        int64_t n_ = numel(desc);                                                     \
        if ((desc)->dtype == 0) {                                                     \
            typedef float T;                                                          \
            for (int64_t i = 0; i < n_; i++) { BODY; }                                \
        } else if ((desc)->dtype == 1) {                                              \
            typedef _Float16 T;                                                       \
            for (int64_t i = 0; i < n_; i++) { BODY; }                                \
        } else {                                                                      \
            return RC_DTYPE;                                                          \
        }                                                                             \
    } while (0)

#define LOAD(desc) ((float)((const T *)(uintptr_t)(desc)->ptr)[i])
#define STORE(desc, value) (((T *)(uintptr_t)(desc)->ptr)[i] = (T)(value))
#endif
