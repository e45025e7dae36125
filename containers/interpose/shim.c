/* A library with the exports of another one: counts each call in a shared file and jumps on.
 *
 * exports.h (generated) lists them: EXPORTS(X) is X(0, name0) X(1, name1) .., COUNT is their number.
 * A trampoline touches r11 and the flags alone, which a call may destroy anyway, and ends in a jump: arguments
 * in registers and on the stack, varargs and the return value are the real function's own business.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "exports.h"

#if !defined(__x86_64__)
#error "the shim's trampolines are written for x86-64"
#endif

#define HIDDEN __attribute__((visibility("hidden"), used))

/* One record of the shared file. NAME_BYTES + 8 must be 256: the trampolines count on it. */
#define NAME_BYTES 248
struct record {
    char name[NAME_BYTES];
    uint64_t calls;
};

static struct record unshared[COUNT];
HIDDEN struct record *tilefarm_records = unshared;
HIDDEN void *tilefarm_real[COUNT];

static int64_t failed(void) {
    return -3;
}

static void map_records(void) {
    const char *path = getenv("TILEFARM_INTERPOSE_COUNTS");
    if (path != NULL) {
        int file = open(path, O_RDWR | O_CLOEXEC);
        void *place = MAP_FAILED;
        if (file >= 0) {
            place = mmap(NULL, sizeof(unshared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            close(file);
        }
        if (place == MAP_FAILED) {
            fprintf(stderr, "interposed library: cannot map %s\n", path);
        } else {
            tilefarm_records = place;
        }
    }
#define NAME(index, name_) strncpy(tilefarm_records[index].name, #name_, NAME_BYTES - 1);
    EXPORTS(NAME)
}

__attribute__((constructor)) static void start(void) {
    map_records();
    for (int index = 0; index < COUNT; index++) {
        tilefarm_real[index] = (void *)failed;
    }
    const char *path = getenv("TILEFARM_INTERPOSE_LIBRARY");
    void *library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL) {
        fprintf(stderr, "interposed library: %s\n", path != NULL ? dlerror() : "no library is named");
        return;
    }
#define FIND(index, name_)                                                            \
    do {                                                                              \
        void *found = dlsym(library, #name_);                                         \
        if (found != NULL) tilefarm_real[index] = found;                              \
    } while (0);
    EXPORTS(FIND)
}

#define TRAMPOLINE(index, name_)                                                      \
    __asm__(".text\n"                                                                 \
            ".globl " #name_ "\n"                                                     \
            ".type " #name_ ", @function\n"                                           \
            #name_ ":\n"                                                              \
            "    endbr64\n"                                                           \
            "    movq tilefarm_records(%rip), %r11\n"                                 \
            "    lock incq (" #index " * 256 + 248)(%r11)\n"                          \
            "    jmpq *(tilefarm_real + 8 * " #index ")(%rip)\n"                      \
            ".size " #name_ ", . - " #name_ "\n");
EXPORTS(TRAMPOLINE)
