/* A library with the exports of another one, which do nothing. See shim.c for exports.h.
 * They fail as a launch does, or return what TILEFARM_INTERPOSE_RESULT says.
 */
#include <stdint.h>
#include <stdlib.h>

#include "exports.h"

static int64_t result = -3;

__attribute__((constructor)) static void start(void) {
    const char *text = getenv("TILEFARM_INTERPOSE_RESULT");
    if (text != NULL) result = atoll(text);
}

#define FAIL(index, name)                                                             \
    int64_t name(void) { return result; }
EXPORTS(FAIL)
