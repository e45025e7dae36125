/* Device, context, memory, streams and events of a machine that has no GPU: device memory is host
 * memory, and all work is done when the call returns. */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

#define MEMORY_BYTES ((size_t)128 << 30)

static int number(const char *variable, int otherwise) {
    const char *text = getenv(variable);
    return text && *text ? atoi(text) : otherwise;
}

static CUresult take(void **out, size_t bytes) {
    return posix_memalign(out, 512, bytes ? bytes : 1) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static char the_context, the_pool;

CUresult cuInit(unsigned flags) {
    (void)flags;
    if (standin_folder()) return CUDA_SUCCESS;
    fprintf(stderr, "stand-in driver: TILEFARM_STANDIN_DIR is not set, nothing could be recorded\n");
    return CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *version) { *version = CUDA_VERSION; return CUDA_SUCCESS; }
CUresult cuDeviceGetCount(int *count) { *count = 1; return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    *device = 0;
    return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    (void)device;
    snprintf(name, (size_t)length, "stand-in");
    return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) { (void)device; *bytes = MEMORY_BYTES; return CUDA_SUCCESS; }
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) { (void)device; memset(uuid, 1, sizeof *uuid); return CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    (void)device;
    switch ((int)attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = number("TILEFARM_STANDIN_MAJOR", 9); break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = number("TILEFARM_STANDIN_MINOR", 0); break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = number("TILEFARM_STANDIN_SMS", 132); break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: *value = INT32_MAX; break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: *value = 65535; break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = 1000000; break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY: *value = 1; break;
    default: *value = 0; break;
    }
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    (void)device;
    *context = (CUcontext)&the_context;
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) { (void)device; return CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext context) { (void)context; return CUDA_SUCCESS; }
CUresult cuCtxGetCurrent(CUcontext *context) { *context = (CUcontext)&the_context; return CUDA_SUCCESS; }
CUresult cuCtxPushCurrent(CUcontext context) { (void)context; return CUDA_SUCCESS; }
CUresult cuCtxPopCurrent(CUcontext *context) { *context = (CUcontext)&the_context; return CUDA_SUCCESS; }
CUresult cuCtxGetDevice(CUdevice *device) { *device = 0; return CUDA_SUCCESS; }
CUresult cuCtxGetId(CUcontext context, unsigned long long *id) { (void)context; *id = 1; return CUDA_SUCCESS; }
CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version) { (void)context; *version = CUDA_VERSION; return CUDA_SUCCESS; }
CUresult cuCtxSetFlags(unsigned flags) { (void)flags; return CUDA_SUCCESS; }
CUresult cuCtxSynchronize(void) { return CUDA_SUCCESS; }

CUresult cuMemGetInfo(size_t *available, size_t *total) { *available = *total = MEMORY_BYTES; return CUDA_SUCCESS; }
CUresult cuMemAlloc(CUdeviceptr *out, size_t bytes) { return take((void **)out, bytes); }
CUresult cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream stream) { (void)stream; return take((void **)out, bytes); }
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream) {
    (void)pool;
    (void)stream;
    return take((void **)out, bytes);
}
CUresult cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned flags) { (void)flags; return take((void **)out, bytes); }
CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned flags) { (void)flags; return take(out, bytes); }
CUresult cuMemAllocHost(void **out, size_t bytes) { return take(out, bytes); }
CUresult cuMemFree(CUdeviceptr address) { free((void *)address); return CUDA_SUCCESS; }
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) { (void)stream; free((void *)address); return CUDA_SUCCESS; }
CUresult cuMemFreeHost(void *address) { free(address); return CUDA_SUCCESS; }

/* Addresses of the recording are not memory: copying them would crash, so it is refused aloud. */
static CUresult copy(void *to, const void *from, size_t bytes) {
    if (((uintptr_t)to | (uintptr_t)from) >> 60) return (CUresult)standin_missing("memcpy of a tensor");
    memcpy(to, from, bytes);
    return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes) { return copy((void *)to, from, bytes); }
CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes) { return copy(to, (void *)from, bytes); }
CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) { return copy((void *)to, (void *)from, bytes); }
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream s) { (void)s; return copy((void *)to, from, bytes); }
CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream s) { (void)s; return copy(to, (void *)from, bytes); }
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) { (void)s; return copy((void *)to, (void *)from, bytes); }
CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t bytes) {
    if (to >> 60) return (CUresult)standin_missing("memset of a tensor");
    memset((void *)to, value, bytes);
    return CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream s) { (void)s; return cuMemsetD8(to, value, bytes); }

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr address) {
    (void)address;
    if (attribute == CU_POINTER_ATTRIBUTE_CONTEXT) *(CUcontext *)value = (CUcontext)&the_context;
    else if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) *(int *)value = 0;
    else if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) *(unsigned *)value = CU_MEMORYTYPE_DEVICE;
    else if (attribute == CU_POINTER_ATTRIBUTE_IS_MANAGED) *(unsigned *)value = 0;
    else return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
    (void)device;
    *pool = (CUmemoryPool)&the_pool;
    return CUDA_SUCCESS;
}
CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties) {
    (void)properties;
    *pool = (CUmemoryPool)&the_pool;
    return CUDA_SUCCESS;
}
CUresult cuMemPoolDestroy(CUmemoryPool pool) { (void)pool; return CUDA_SUCCESS; }
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
    (void)pool;
    (void)attribute;
    (void)value;
    return CUDA_SUCCESS;
}
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
    (void)pool;
    (void)attribute;
    memset(value, 0, sizeof(cuuint64_t));
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags) { (void)flags; return take((void **)stream, 8); }
CUresult cuStreamDestroy(CUstream stream) { free(stream); return CUDA_SUCCESS; }
CUresult cuStreamSynchronize(CUstream stream) { (void)stream; return CUDA_SUCCESS; }
CUresult cuStreamQuery(CUstream stream) { (void)stream; return CUDA_SUCCESS; }
CUresult cuStreamGetCtx(CUstream stream, CUcontext *context) {
    (void)stream;
    *context = (CUcontext)&the_context;
    return CUDA_SUCCESS;
}
CUresult cuStreamGetId(CUstream stream, unsigned long long *id) { *id = (uintptr_t)stream; return CUDA_SUCCESS; }
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    (void)stream;
    (void)event;
    (void)flags;
    return CUDA_SUCCESS;
}
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
    (void)stream;
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}
CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t length, unsigned flags) {
    (void)stream;
    (void)address;
    (void)length;
    (void)flags;
    return CUDA_SUCCESS;
}
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data) {
    (void)stream;
    function(data);
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned flags) { (void)flags; return take((void **)event, 8); }
CUresult cuEventDestroy(CUevent event) { free(event); return CUDA_SUCCESS; }
CUresult cuEventRecord(CUevent event, CUstream stream) { (void)event; (void)stream; return CUDA_SUCCESS; }
CUresult cuEventQuery(CUevent event) { (void)event; return CUDA_SUCCESS; }
CUresult cuEventSynchronize(CUevent event) { (void)event; return CUDA_SUCCESS; }
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end) { (void)start; (void)end; *ms = 1.0f; return CUDA_SUCCESS; }

CUresult cuGetErrorName(CUresult error, const char **text) {
    *text = error == CUDA_SUCCESS ? "CUDA_SUCCESS" : "CUDA_ERROR";
    return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult error, const char **text) {
    *text = error == CUDA_ERROR_NOT_SUPPORTED ? "the stand-in driver does not have this function"
                                              : "error of the stand-in driver";
    return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult *status) {
    (void)version;
    (void)flags;
    *function = standin_lookup(symbol);
    if (status) *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
