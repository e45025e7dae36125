/* The part of CUPTI and of the driver that the collector uses, declared by us so that no toolkit is needed to build.
 *
 * Records: only leading fields, at the offsets that NVIDIA's headers of 12.8 (version 26), 13.0 (130001),
 * 13.2 (130202) and 13.5 (130500) share; later versions only append. A library of another family is refused. */
#ifndef TILEFARM_CUPTI_H
#define TILEFARM_CUPTI_H
#include <stddef.h>
#include <stdint.h>

enum { KIND_MEMCPY = 1, KIND_MEMSET = 2, KIND_KERNEL = 3, KIND_CONCURRENT_KERNEL = 10 };
enum { CUPTI_OK = 0, CUPTI_NO_MORE = 12 };
enum { FLUSH_FORCED = 1 };

static inline int known_version(uint32_t version) {
    return (version >= 26 && version <= 28) || (version >= 130000 && version < 130600);
}

struct kernel_record {
    uint32_t kind, before[3];
    uint64_t start, end, completed;
    uint32_t device, context, stream, shape[10], correlation;
    int64_t grid;
    const char *name;
} __attribute__((packed, aligned(8)));
_Static_assert(offsetof(struct kernel_record, start) == 16, "start");
_Static_assert(offsetof(struct kernel_record, stream) == 48, "stream");
_Static_assert(offsetof(struct kernel_record, correlation) == 92, "correlation");
_Static_assert(offsetof(struct kernel_record, name) == 104, "name");

struct memory_record { /* memcpy and memset */
    uint32_t kind, value;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
} __attribute__((packed, aligned(8)));
_Static_assert(offsetof(struct memory_record, bytes) == 8, "bytes");
_Static_assert(offsetof(struct memory_record, start) == 16, "start");
_Static_assert(offsetof(struct memory_record, stream) == 40, "stream");
_Static_assert(offsetof(struct memory_record, correlation) == 44, "correlation");

typedef uint64_t (*clock_function)(void);
typedef void (*request_function)(uint8_t **buffer, size_t *size, size_t *most);
typedef void (*complete_function)(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);

/* X(result, name, arguments) */
#define CUPTI_FUNCTIONS(X)                                                              \
    X(int, cuptiGetVersion, (uint32_t * version))                                       \
    X(int, cuptiActivityRegisterCallbacks, (request_function, complete_function))       \
    X(int, cuptiActivityRegisterTimestampCallback, (clock_function))                    \
    X(int, cuptiActivityEnable, (uint32_t kind))                                        \
    X(int, cuptiActivityDisable, (uint32_t kind))                                       \
    X(int, cuptiActivityFlushAll, (uint32_t flag))                                      \
    X(int, cuptiActivityGetNextRecord, (uint8_t * buffer, size_t valid, void **record)) \
    X(int, cuptiActivityGetNumDroppedRecords, (void *context, uint32_t stream, size_t *dropped))

#define DRIVER_FUNCTIONS(X)                                                    \
    X(int, cuCtxGetCurrent, (void **context))                                  \
    X(int, cuMemAlloc_v2, (uint64_t * address, size_t bytes))                  \
    X(int, cuStreamCreate, (void **stream, unsigned flags))                    \
    X(int, cuStreamSynchronize, (void *stream))                                \
    X(int, cuMemsetD32Async, (uint64_t address, unsigned value, size_t count, void *stream))

#endif
