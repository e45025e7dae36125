#define _GNU_SOURCE
#include "header.h"

#include <stdlib.h>
#include <string.h>

size_t header_total(const char *data) {
    size_t magic = strlen(HEADER_MAGIC);
    return strncmp(data, HEADER_MAGIC, magic) ? 0 : strtoull(data + magic, NULL, 10);
}

size_t header_length(const char *data, size_t length) {
    size_t magic = strlen(HEADER_MAGIC);
    if (length < magic + 11 || memcmp(data, HEADER_MAGIC, magic)) return 0;
    if (header_total(data) != length) return 0;
    const char *end = memmem(data, length, "\nend\n", 5);
    return end ? (size_t)(end - data) + 5 : 0;
}

int header_entry(const char *data, size_t length, const char *name, unsigned char *width, int most) {
    size_t limit = header_length(data, length), name_length = strlen(name);
    const char *line = data;
    while (line < data + limit) {
        const char *end = memchr(line, '\n', (size_t)(data + limit - line));
        if (!strncmp(line, "entry ", 6) && !strncmp(line + 6, name, name_length) &&
            (line[6 + name_length] == ' ' || line[6 + name_length] == '\n')) {
            int count = 0;
            char *next = (char *)line + 6 + name_length;
            while (next < end && count < most) {
                while (*next == ' ') next++;
                if (next >= end) break;
                width[count++] = (unsigned char)strtoul(next, &next, 10);
            }
            return next < end ? -1 : count;
        }
        line = end + 1;
    }
    return -1;
}
