#define _GNU_SOURCE
#include "log.h"

#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *standin_folder(void) {
    const char *folder = getenv("TILEFARM_STANDIN_DIR");
    return folder && *folder ? folder : NULL;
}

int standin_log(const char *format, ...) {
    const char *folder = standin_folder();
    if (!folder) return -1;
    char *line = NULL, *path = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&line, format, args);
    va_end(args);
    if (length < 0) return -1;
    int status = -1;
    if (asprintf(&path, "%s/driver.jsonl", folder) >= 0) {
        int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        if (fd >= 0) {
            if (write(fd, line, (size_t)length) == length) status = 0;
            close(fd);
        }
    }
    free(path);
    free(line);
    return status;
}

void standin_quote(char *out, size_t size, const char *text) {
    size_t used = 0;
    for (; *text && used + 7 < size; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            out[used++] = '\\';
            out[used++] = (char)c;
        } else if (c < 0x20) {
            used += (size_t)snprintf(out + used, size - used, "\\u%04x", c);
        } else {
            out[used++] = (char)c;
        }
    }
    out[used] = 0;
}

int standin_missing(const char *name) {
    standin_log("{\"event\": \"missing\", \"function\": \"%s\"}\n", name);
    fprintf(stderr, "stand-in driver: %s is not implemented\n", name);
    return CUDA_ERROR_NOT_SUPPORTED;
}

void *standin_lookup(const char *name) {
    static const char *const suffixes[] = {"_v4", "_v3", "_v2", ""};
    Dl_info mine;
    if (!dladdr((void *)standin_lookup, &mine)) return NULL;
    void *self = dlopen(mine.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!self) return NULL;
    char versioned[160];
    void *found = NULL;
    for (size_t i = 0; !found && i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(versioned, sizeof versioned, "%s%s", name, suffixes[i]);
        found = dlsym(self, versioned);
    }
    dlclose(self);
    return found;
}
