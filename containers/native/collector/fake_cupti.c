/* Stands for libcupti and libcuda where there is no GPU: records are what a test launches. Not installed.
 *   cc -shared -fPIC -Wl,-soname,libcuda.so.1 -o fake.so fake_cupti.c */
#include <stdlib.h>
#include <string.h>

#include "cupti.h"

#define MOST 1024
union record {
    uint32_t kind;
    struct kernel_record kernel;
    struct memory_record memory;
};
static union record pending[MOST];
static size_t pending_count, dropped;
static int enabled, without_context;
static request_function request;
static complete_function complete;
static clock_function clock_now;
static uint64_t clock_rate = 1;

static union record *add(uint32_t kind) {
    static union record nowhere;
    union record *record = enabled & 1 << kind ? &pending[pending_count++] : &nowhere;
    memset(record, 0, sizeof *record);
    record->kind = kind;
    return record;
}

int cuptiGetVersion(uint32_t *version) {
    const char *text = getenv("FAKE_CUPTI_VERSION");
    *version = text ? (uint32_t)atoi(text) : 130001;
    return 0;
}

int cuptiActivityRegisterCallbacks(request_function asked, complete_function done) {
    request = asked;
    complete = done;
    return 0;
}

int cuptiActivityRegisterTimestampCallback(clock_function given) { return (clock_now = given, 0); }
int cuptiActivityEnable(uint32_t kind) { return (enabled |= 1 << kind, 0); }
int cuptiActivityDisable(uint32_t kind) { return (enabled &= ~(1 << kind), 0); }

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *count) {
    (void)context, (void)stream;
    *count = dropped;
    dropped = 0;
    return 0;
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record) {
    uint8_t *next = *record ? (uint8_t *)*record + sizeof(union record) : buffer;
    if (next + sizeof(union record) > buffer + valid) return CUPTI_NO_MORE;
    *record = next;
    return 0;
}

int cuptiActivityFlushAll(uint32_t flag) {
    (void)flag;
    uint8_t *buffer = NULL;
    size_t size, most;
    if (!request || !(pending_count || dropped)) return 0;
    request(&buffer, &size, &most);
    memcpy(buffer, pending, pending_count * sizeof *pending);
    complete(NULL, 0, buffer, size, pending_count * sizeof *pending);
    pending_count = 0;
    return 0;
}

int cuCtxGetCurrent(void **context) { return (*context = without_context ? NULL : (void *)1, 0); }
int cuMemAlloc_v2(uint64_t *address, size_t bytes) { return (void)bytes, (*address = 4096, 0); }
int cuStreamCreate(void **stream, unsigned flags) { return (void)flags, (*stream = (void *)9, 0); }
int cuStreamSynchronize(void *stream) { return (void)stream, 0; }
int cuMemsetD32Async(uint64_t address, unsigned value, size_t count, void *stream) {
    (void)address, (void)stream;
    struct memory_record *memory = &add(KIND_MEMSET)->memory;
    memory->value = value;
    memory->bytes = 4 * count;
    memory->start = memory->end = clock_rate * clock_now();
    memory->stream = 9;
    return 0;
}

/* What a test calls. */
void fake_launch(const char *name, uint64_t start, uint64_t end, uint32_t stream, uint32_t correlation) {
    struct kernel_record *kernel = &add(KIND_CONCURRENT_KERNEL)->kernel;
    kernel->name = name;
    kernel->start = start;
    kernel->end = end;
    kernel->stream = stream;
    kernel->correlation = correlation;
}
void fake_clock(uint64_t rate) { clock_rate = rate; }
void fake_drop(size_t count) { dropped += count; }
void fake_context(int there) { without_context = !there; }

static void other_request(uint8_t **buffer, size_t *size, size_t *most) {
    *buffer = malloc(*size = 1 << 20);
    *most = 0;
}
static void other_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    (void)context, (void)stream, (void)size, (void)valid;
    free(buffer);
}
/* Another profiler registers itself. */
void fake_other_profiler(void) { cuptiActivityRegisterCallbacks(other_request, other_complete); }
