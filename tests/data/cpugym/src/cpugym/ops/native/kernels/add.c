/* SPDX-License-Identifier: MIT */
#include "desc.h"

int32_t cpu_add(const TensorDesc *x, const TensorDesc *y, const TensorDesc *z) {
    if (!x || !y || !z) return RC_NULL;
    FOR_EACH(x, STORE(z, LOAD(x) + LOAD(y)));
    return RC_OK;
}
