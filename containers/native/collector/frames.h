/* Frames to the parent's pipe: `u16 kind, u16 length`, then the payload, little endian; the reader is
 * containers/box/gate/collector.py. */
#ifndef TILEFARM_FRAMES_H
#define TILEFARM_FRAMES_H
#include <stddef.h>
#include <stdint.h>

enum frame {
    FRAME_HELLO = 1,  /* u32 CUPTI version, u32 process */
    FRAME_SYMBOL = 2, /* u32 number, name */
    FRAME_EVENT = 3,  /* u32 what, u32 symbol, u32 stream, u32 correlation, u64 start_ns, u64 end_ns */
    FRAME_LOST = 4,   /* u64 records that were dropped or had no time */
    FRAME_TOKEN = 5,  /* u64 token, u32 state, i32 result of the flush */
    FRAME_BEGIN = 6,  /* u64 times that the callbacks were registered */
    FRAME_ERROR = 7   /* text */
};

enum what { EVENT_KERNEL = 1, EVENT_COPY = 2, EVENT_SET = 3, EVENT_CANARY = 4 };

/* State of the collection at a token. */
enum state {
    STATE_COMPLETE = 0,    /* the canary of this flush came through our buffers */
    STATE_TAKEN = 1,       /* it did not: somebody else receives the records, or nobody does */
    STATE_NO_CONTEXT = 2,  /* no CUDA context is current, so nothing was tried */
    STATE_NOT_LOADED = 3,  /* the driver did not load the collector, or CUPTI could not be used */
    STATE_IDLE = 5,        /* nothing is collected: before `tilefarm_begin`, after `tilefarm_end` */
    STATE_CLOCK = 6        /* the canary ran at a time at which it cannot have run: times are no nanoseconds */
};

int frames_open(void); /* 1: the inherited pipe is there; safe to call again */
void frames_put(enum frame kind, const void *payload, size_t length);
void frames_text(enum frame kind, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint32_t frames_symbol(const char *name); /* its number; the first time its name is sent before */
#endif
