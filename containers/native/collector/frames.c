/* Writes frames to the pipe that the parent holds. */
#define _GNU_SOURCE
#include "frames.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LONGEST_NAME 4000
#define PATIENCE_MS 10000
#define BUCKETS 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int pipe_fd = -1;

struct symbol {
    struct symbol *next;
    uint32_t number;
    char name[];
};
static struct symbol *symbols[BUCKETS];
static uint32_t symbol_count;

/* TILEFARM_COLLECTOR_PIPE is `descriptor:inode`: a grandchild inherits the variable but not the pipe, and
 * must not write into whatever has that number there. */
int frames_open(void) {
    pthread_mutex_lock(&lock);
    const char *text = getenv("TILEFARM_COLLECTOR_PIPE");
    int fd;
    unsigned long long inode;
    struct stat status;
    if (pipe_fd == -1 && text && sscanf(text, "%d:%llu", &fd, &inode) == 2 && fstat(fd, &status) == 0 &&
        S_ISFIFO(status.st_mode) && (unsigned long long)status.st_ino == inode) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
        pipe_fd = fd;
    }
    int there = pipe_fd >= 0;
    pthread_mutex_unlock(&lock);
    return there;
}

/* After a reader that stays away for PATIENCE_MS the pipe is closed for good: the reader sees its end. */
static void put_all(const uint8_t *bytes, size_t length) {
    while (length && pipe_fd >= 0) {
        ssize_t written = write(pipe_fd, bytes, length);
        if (written > 0) {
            bytes += written;
            length -= (size_t)written;
            continue;
        }
        if (written < 0 && errno == EINTR) continue;
        struct pollfd wait = {.fd = pipe_fd, .events = POLLOUT};
        if (errno == EAGAIN && poll(&wait, 1, PATIENCE_MS) > 0 && !(wait.revents & (POLLERR | POLLNVAL))) continue;
        close(pipe_fd);
        pipe_fd = -2;
    }
}

static void put(enum frame kind, const void *payload, size_t length) {
    uint8_t bytes[4 + 4 + LONGEST_NAME];
    if (length > sizeof bytes - 4) length = sizeof bytes - 4;
    uint16_t head[2] = {(uint16_t)kind, (uint16_t)length};
    memcpy(bytes, head, 4);
    memcpy(bytes + 4, payload, length);
    put_all(bytes, 4 + length);
}

void frames_put(enum frame kind, const void *payload, size_t length) {
    pthread_mutex_lock(&lock);
    put(kind, payload, length);
    pthread_mutex_unlock(&lock);
}

void frames_text(enum frame kind, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    frames_put(kind, text, strlen(text));
}

uint32_t frames_symbol(const char *name) {
    if (!name) name = "(no name)";
    size_t length = strnlen(name, LONGEST_NAME);
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < length; i++) hash = (hash ^ (uint8_t)name[i]) * 16777619u;
    pthread_mutex_lock(&lock);
    struct symbol **place = &symbols[hash % BUCKETS];
    while (*place && (strncmp((*place)->name, name, length) || (*place)->name[length])) place = &(*place)->next;
    if (!*place && (*place = malloc(sizeof **place + length + 1))) {
        (*place)->next = NULL;
        (*place)->number = ++symbol_count;
        memcpy((*place)->name, name, length);
        (*place)->name[length] = 0;
        uint8_t payload[4 + LONGEST_NAME];
        memcpy(payload, &symbol_count, 4);
        memcpy(payload + 4, name, length);
        put(FRAME_SYMBOL, payload, 4 + length);
    }
    uint32_t number = *place ? (*place)->number : 0;
    pthread_mutex_unlock(&lock);
    return number;
}
