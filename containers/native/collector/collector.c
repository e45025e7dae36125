/* Collects what runs on the device, by CUPTI's activity records, before and outside of any Python code.
 *
 * The CUDA driver loads this library in cuInit (CUDA_INJECTION64_PATH) and calls InitializeInjection. It collects
 * from `tilefarm_begin` to `tilefarm_end`: a profiler of the watched code that starts in between gets nothing, one
 * that starts outside gets all.
 * CUPTI keeps one pair of buffer callbacks for a process and the last registration wins, so a profiler that
 * the watched code starts takes our records away without an error. Each flush therefore sends a *canary*, a
 * memset of our own with a value of our own, and says whether it came back; `tilefarm_begin` takes the
 * callbacks again. No callback is subscribed, so that such a profiler still works. It may also have given CUPTI a
 * clock of its own (PyTorch's counts processor cycles): `tilefarm_begin` sets ours, and the canary's time is
 * compared with the host's before and after it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cupti.h"
#include "frames.h"

#define EXPORT __attribute__((visibility("default")))
#define BUFFER_BYTES ((size_t)1 << 20)
#define MOST_BUFFERS 64
#define CLOCKS_AGREE_NS 1000000 /* as well as CUPTI matches the device's clock with the host's, with room */
#define CANARY_VALUE 0x7f4a0000u /* the lower half counts the canaries */

#define POINTER(result, name, arguments) static result(*p_##name) arguments;
CUPTI_FUNCTIONS(POINTER)
DRIVER_FUNCTIONS(POINTER)

static const uint32_t kinds[] = {KIND_CONCURRENT_KERNEL, KIND_MEMCPY, KIND_MEMSET};
static int usable;     /* CUPTI is loaded and known */
static int collecting; /* between `tilefarm_begin` and `tilefarm_end` */
static uint64_t registrations;
static unsigned canary_seen; /* atomic: value of the last one, set on CUPTI's thread after its times */
static uint64_t canary_start, canary_end;

/* Buffers that are ours: CUPTI may hand us one that a former owner of the callbacks gave it. */
static pthread_mutex_t buffers_lock = PTHREAD_MUTEX_INITIALIZER;
static struct { uint8_t *address; int lent; } buffers[MOST_BUFFERS];

static void on_request(uint8_t **buffer, size_t *size, size_t *most) {
    *buffer = NULL;
    *size = 0;
    *most = 0;
    pthread_mutex_lock(&buffers_lock);
    for (int i = 0; i < MOST_BUFFERS && !*buffer; i++) {
        if (buffers[i].lent) continue;
        if (!buffers[i].address) buffers[i].address = aligned_alloc(8, BUFFER_BYTES);
        if (!buffers[i].address) break;
        buffers[i].lent = 1;
        *buffer = buffers[i].address;
        *size = BUFFER_BYTES;
    }
    pthread_mutex_unlock(&buffers_lock);
}

static void give_back(const uint8_t *buffer) {
    pthread_mutex_lock(&buffers_lock);
    for (int i = 0; i < MOST_BUFFERS; i++)
        if (buffers[i].address == buffer) buffers[i].lent = 0;
    pthread_mutex_unlock(&buffers_lock);
}

static void put_lost(uint64_t count) { frames_put(FRAME_LOST, &count, sizeof count); }

static void put_event(enum what what, const char *name, uint32_t stream, uint32_t correlation, uint64_t start,
                      uint64_t end) {
    struct {
        uint32_t what, symbol, stream, correlation;
        uint64_t start, end;
    } event = {what, frames_symbol(name), stream, correlation, start, end};
    if (!start || !end)
        put_lost(1); /* a record without times, which CUPTI's headers announce for want of memory */
    else
        frames_put(FRAME_EVENT, &event, sizeof event);
}

static void put_record(const void *record) {
    uint32_t kind;
    memcpy(&kind, record, sizeof kind);
    if (kind == KIND_KERNEL || kind == KIND_CONCURRENT_KERNEL) {
        const struct kernel_record *it = record;
        put_event(EVENT_KERNEL, it->name, it->stream, it->correlation, it->start, it->end);
    } else if (kind == KIND_MEMCPY || kind == KIND_MEMSET) {
        const struct memory_record *it = record;
        int canary = kind == KIND_MEMSET && (it->value & 0xffff0000u) == CANARY_VALUE && it->bytes == 4;
        if (canary) {
            canary_start = it->start;
            canary_end = it->end;
            __atomic_store_n(&canary_seen, it->value, __ATOMIC_SEQ_CST);
        }
        put_event(canary ? EVENT_CANARY : kind == KIND_MEMCPY ? EVENT_COPY : EVENT_SET,
                  canary ? "[canary]" : kind == KIND_MEMCPY ? "[memcpy]" : "[memset]", it->stream, it->correlation,
                  it->start, it->end);
    }
}

static void on_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    (void)size;
    void *record = NULL;
    int result = CUPTI_OK;
    while (valid && (result = p_cuptiActivityGetNextRecord(buffer, valid, &record)) == CUPTI_OK) put_record(record);
    if (result != CUPTI_OK && result != CUPTI_NO_MORE) put_lost(1); /* what follows an invalid record is not readable */
    size_t dropped = 0;
    if (p_cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_OK && dropped) put_lost(dropped);
    give_back(buffer);
}

static int load(void) {
    const char *names[] = {getenv("TILEFARM_CUPTI"), "libcupti.so.13", "libcupti.so.12"};
    void *cupti = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !cupti; i++)
        if (names[i] && *names[i]) cupti = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!cupti) {
        frames_text(FRAME_ERROR, "no CUPTI library could be loaded (TILEFARM_CUPTI, libcupti.so.13, .12): %s", dlerror());
        return 0;
    }
#define RESOLVE_CUPTI(result, name, arguments)                       \
    if (!(p_##name = (result(*) arguments)dlsym(cupti, #name))) {    \
        frames_text(FRAME_ERROR, "the CUPTI library lacks " #name);  \
        return 0;                                                    \
    }
    CUPTI_FUNCTIONS(RESOLVE_CUPTI)
    uint32_t hello[2] = {0, (uint32_t)getpid()};
    p_cuptiGetVersion(&hello[0]);
    frames_put(FRAME_HELLO, hello, sizeof hello);
    if (!known_version(hello[0])) {
        frames_text(FRAME_ERROR, "CUPTI version %u is not known: its records may be laid out otherwise", hello[0]);
        return 0;
    }
    return 1;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int take(void) {
    int result = p_cuptiActivityRegisterTimestampCallback(now_ns);
    if (result == CUPTI_OK) result = p_cuptiActivityRegisterCallbacks(on_request, on_complete);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && result == CUPTI_OK; i++)
        result = p_cuptiActivityEnable(kinds[i]);
    if (result != CUPTI_OK) {
        frames_text(FRAME_ERROR, "CUPTI refused the collection with error %d", result);
        return 0;
    }
    collecting = 1;
    registrations++;
    frames_put(FRAME_BEGIN, &registrations, sizeof registrations);
    return 1;
}

/* Entry point of CUDA_INJECTION64_PATH; 1 tells the driver that all is well. CUDA goes on in any case. */
EXPORT int InitializeInjection(void) {
    static int done;
    if (!done && frames_open()) usable = load();
    done = 1;
    return 1;
}

static enum state look(int32_t *result);

/* Receive the records, again if another profiler ran. Returns 1 if that worked. */
EXPORT int tilefarm_begin(void) {
    if (!usable) return 0;
    if (registrations) p_cuptiActivityFlushAll(FLUSH_FORCED); /* what the other's buffers hold is delivered to it */
    if (!take()) return 0;
    int32_t result;
    look(&result); /* the first times after a change of clocks are between both */
    return 1;
}

/* Collect nothing until `tilefarm_begin`. A buffer that CUPTI still held of ours would swallow the first records
 * of a profiler that registers meanwhile, which then sees no device time at all. Returns 1 if that worked. */
EXPORT int tilefarm_end(void) {
    if (!usable) return 0;
    if (!collecting) return 1;
    collecting = 0;
    int result = CUPTI_OK;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && result == CUPTI_OK; i++)
        result = p_cuptiActivityDisable(kinds[i]);
    p_cuptiActivityFlushAll(FLUSH_FORCED);
    return result == CUPTI_OK;
}

/* A stream and a word of our own in the current context; 0 if there is no context. */
static int canary_place(void **stream, uint64_t *address) {
    static void *of, *our_stream;
    static uint64_t our_address;
    void *context = NULL;
#define RESOLVE_DRIVER(result, name, arguments) \
    if (!p_##name && !(p_##name = (result(*) arguments)dlsym(driver, #name))) return 0;
    if (!p_cuMemsetD32Async) {
        void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        if (!driver) return 0;
        DRIVER_FUNCTIONS(RESOLVE_DRIVER)
    }
    if (p_cuCtxGetCurrent(&context) || !context) return 0;
    if (context != of) {
        if (p_cuMemAlloc_v2(&our_address, 256) || p_cuStreamCreate(&our_stream, 1 /* non-blocking */)) return 0;
        of = context;
    }
    *stream = our_stream;
    *address = our_address;
    return 1;
}

/* Deliver all complete records, a canary among them. */
static enum state look(int32_t *result) {
    static uint16_t count;
    unsigned canary = CANARY_VALUE | ++count;
    void *stream;
    uint64_t address, before = now_ns();
    int sent = canary_place(&stream, &address) && !p_cuMemsetD32Async(address, canary, 1, stream) &&
               !p_cuStreamSynchronize(stream);
    uint64_t after = now_ns();
    *result = p_cuptiActivityFlushAll(FLUSH_FORCED);
    if (!sent) return STATE_NO_CONTEXT;
    if (__atomic_load_n(&canary_seen, __ATOMIC_SEQ_CST) != canary) return STATE_TAKEN;
    int in_time = canary_start + CLOCKS_AGREE_NS >= before && canary_end <= after + CLOCKS_AGREE_NS;
    return in_time ? STATE_COMPLETE : STATE_CLOCK;
}

/* Deliver all complete records, then a token. The caller has synchronised the device. */
EXPORT int tilefarm_flush(uint64_t token) {
    struct {
        uint64_t token;
        uint32_t state;
        int32_t result;
    } mark = {token, STATE_NOT_LOADED, 0};
    if (!frames_open()) return 0;
    if (usable && !collecting) {
        mark.state = STATE_IDLE;
    } else if (usable) {
        mark.state = look(&mark.result);
    }
    frames_put(FRAME_TOKEN, &mark, sizeof mark);
    return mark.state == STATE_COMPLETE && mark.result == CUPTI_OK;
}
