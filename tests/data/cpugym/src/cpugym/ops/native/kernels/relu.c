/* SPDX-License-Identifier: MIT */
#include "desc.h"

int32_t cpu_relu(const TensorDesc *x, const TensorDesc *y) {
    if (!x || !y) return RC_NULL;
    FOR_EACH(x, float v = LOAD(x); STORE(y, v < 0.0f ? 0.0f : v));
    return RC_OK;
}

int32_t cpu_relu_backward(const TensorDesc *x, const TensorDesc *dy, const TensorDesc *dx) {
    if (!x || !dy || !dx) return RC_NULL;
    FOR_EACH(x, STORE(dx, LOAD(x) > 0.0f ? LOAD(dy) : 0.0f));
    return RC_OK;
}
