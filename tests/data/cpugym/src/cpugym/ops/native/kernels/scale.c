/* SPDX-License-Identifier: MIT */
#include "desc.h"

int32_t cpu_scale(const TensorDesc *x, const TensorDesc *y, float alpha) {
    if (!x || !y) return RC_NULL;
    FOR_EACH(x, STORE(y, LOAD(x) * alpha));
    return RC_OK;
}
