/* Modules and launches. A module is what tileiras-passthrough wrote: a header that says how wide each
 * entry's parameters are, then the Tile IR bytecode. A launch becomes one line of driver.jsonl. */
#define _GNU_SOURCE
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "header.h"
#include "log.h"

#define MAX_PARAMETERS 512

typedef struct {
    int number;
    size_t length;
    char *data;
} Module;

typedef struct {
    Module *module;
    char *name;
    int parameters;
    unsigned char width[MAX_PARAMETERS]; /* bytes */
} Function;

static CUresult refuse(const char *reason) {
    char quoted[512];
    standin_quote(quoted, sizeof quoted, reason);
    standin_log("{\"event\": \"refused\", \"reason\": \"%s\"}\n", quoted);
    fprintf(stderr, "stand-in driver: %s\n", reason);
    return CUDA_ERROR_INVALID_IMAGE;
}

static CUresult keep(CUmodule *out, char *data, size_t length) {
    static int modules;
    size_t header = header_length(data, length);
    if (!header) {
        free(data);
        return refuse("the module does not come from tileiras-passthrough; set CUTILE_TILEIRAS_PATH to it");
    }
    Module *module = calloc(1, sizeof *module);
    module->number = __atomic_fetch_add(&modules, 1, __ATOMIC_SEQ_CST);
    module->data = data;
    module->length = length;
    char *path = NULL;
    if (asprintf(&path, "%s/module-%d.tileirbc", standin_folder(), module->number) < 0) return CUDA_ERROR_OUT_OF_MEMORY;
    FILE *file = fopen(path, "wb");
    int written = file && fwrite(data + header, 1, length - header, file) == length - header;
    if (file && fclose(file)) written = 0;
    free(path);
    if (!written) return refuse("a module could not be written to TILEFARM_STANDIN_DIR");
    standin_log("{\"event\": \"module\", \"module\": %d}\n", module->number);
    *out = (CUmodule)module;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoad(CUmodule *out, const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
    char *data = NULL;
    size_t length = 0, room = 0;
    for (;;) {
        if (length == room) data = realloc(data, room = room ? room * 2 : 1 << 16);
        size_t got = fread(data + length, 1, room - length, file);
        if (!got) break;
        length += got;
    }
    fclose(file);
    return keep(out, data, length);
}

CUresult cuModuleLoadData(CUmodule *out, const void *image) {
    size_t length = header_total(image);
    if (!length) return refuse("the module image does not come from tileiras-passthrough");
    char *data = malloc(length);
    memcpy(data, image, length);
    return keep(out, data, length);
}

CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned count, CUjit_option *options, void **values) {
    (void)count;
    (void)options;
    (void)values;
    return cuModuleLoadData(out, image);
}

CUresult cuModuleUnload(CUmodule module) { (void)module; return CUDA_SUCCESS; }

CUresult cuModuleGetFunction(CUfunction *out, CUmodule handle, const char *name) {
    Module *module = (Module *)handle;
    Function *function = calloc(1, sizeof *function);
    function->module = module;
    function->name = strdup(name);
    function->parameters = header_entry(module->data, module->length, name, function->width, MAX_PARAMETERS);
    if (function->parameters < 0) {
        standin_log("{\"event\": \"refused\", \"reason\": \"module %d has no entry of the name asked for\"}\n",
                    module->number);
        return CUDA_ERROR_NOT_FOUND;
    }
    *out = (CUfunction)function;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    (void)function;
    (void)attribute;
    (void)value;
    return CUDA_SUCCESS;
}
CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) { (void)function; (void)config; return CUDA_SUCCESS; }

static unsigned long launches;

/* Launches that were recorded so far; not a driver function. */
unsigned long standin_launches(void) { return __atomic_load_n(&launches, __ATOMIC_SEQ_CST); }

CUresult cuLaunchKernel(CUfunction handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, CUstream stream, void **parameters, void **extra) {
    (void)stream;
    Function *function = (Function *)handle;
    if (extra) return (CUresult)standin_missing("cuLaunchKernel with extra");
    if (!gx || !gy || !gz) return CUDA_ERROR_INVALID_VALUE;
    char *text = NULL, name[512];
    size_t length = 0;
    FILE *stream_out = open_memstream(&text, &length);
    for (int i = 0; i < function->parameters; i++) {
        uint64_t value = 0;
        memcpy(&value, parameters[i], function->width[i]);
        fprintf(stream_out, "%s%llu", i ? ", " : "", (unsigned long long)value);
    }
    fclose(stream_out);
    standin_quote(name, sizeof name, function->name);
    int status = standin_log("{\"event\": \"launch\", \"module\": %d, \"entry\": \"%s\", \"grid\": [%u, %u, %u], "
                             "\"block\": [%u, %u, %u], \"shared\": %u, \"params\": [%s]}\n",
                             function->module->number, name, gx, gy, gz, bx, by, bz, shared, text);
    free(text);
    __atomic_fetch_add(&launches, 1, __ATOMIC_SEQ_CST);
    return status ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}
