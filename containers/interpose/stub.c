/* A library with the exports of another one, each of which fails as a launch does. See shim.c for exports.h. */
#include <stdint.h>

#include "exports.h"

#define FAIL(index, name)                                                             \
    int64_t name(void) { return -3; }
EXPORTS(FAIL)
