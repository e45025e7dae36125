/* Takes the place of tileiras: writes its input, with a header for the stand-in driver, to its output. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "header.h"

static int fail(const char *what, const char *detail) {
    fprintf(stderr, "tileiras-passthrough: %s: %s\n", what, detail);
    return 1;
}

/* Bytes that a scalar of this Tile IR element type takes among kernel parameters; 0: unknown. */
static int width_of(const char *type) {
    if (!strncmp(type, "ptr<", 4)) return 8;
    int bits = 0;
    if (*type == 'i' || *type == 'f') bits = atoi(type + 1);
    if (!strncmp(type, "bf16", 4)) bits = 16;
    if (!strncmp(type, "tf32", 4)) bits = 32;
    return bits == 1 ? 1 : bits % 8 ? 0 : bits / 8;
}

/* Appends an `entry` line for a line of disassembly that opens an entry. */
static int describe(const char *line, FILE *header) {
    const char *at = strchr(line, '@'), *open = at ? strchr(at, '(') : NULL;
    if (!open) return fail("cannot read the entry", line);
    fprintf(header, "entry %.*s", (int)(open - at - 1), at + 1);
    int depth = 1;
    for (const char *c = open + 1; *c && depth; c++) {
        if (*c == '(') depth++;
        if (*c == ')') depth--;
        if (strncmp(c, ": tile<", 7)) continue;
        int width = width_of(c + 7);
        if (!width) return fail("cannot tell the width of a parameter", c + 2);
        fprintf(header, " %d", width);
    }
    fputc('\n', header);
    return depth ? fail("the entry does not end", line) : 0;
}

static int read_entries(const char *input, FILE *header) {
    const char *tool = getenv("TILEFARM_TILEIRDISASM");
    if (!tool || !*tool) return fail("TILEFARM_TILEIRDISASM", "not set");
    char *command = NULL, *line = NULL;
    size_t room = 0;
    int entries = 0, status = 0;
    if (asprintf(&command, "'%s' '%s'", tool, input) < 0) return fail("memory", input);
    FILE *text = popen(command, "r");
    if (!text) return fail("cannot start", command);
    while (getline(&line, &room, text) > 0) {
        const char *word = line + strspn(line, " ");
        if (!strncmp(word, "entry @", 7)) {
            status |= describe(word, header);
            entries++;
        }
    }
    int ended = pclose(text);
    free(line);
    free(command);
    if (ended) return fail("tileirdisasm failed on", input);
    return status || (entries ? 0 : fail("no entry in", input));
}

int main(int argc, char **argv) {
    const char *output = NULL, *input = NULL;
    for (int i = 1; i < argc; i++) {
        int takes_value = !strcmp(argv[i], "-o") || !strcmp(argv[i], "--gpu-name") || !strcmp(argv[i], "--opt-level");
        if (!strcmp(argv[i], "-o") && i + 1 < argc) output = argv[i + 1];
        if (takes_value) i++;
        else if (argv[i][0] != '-') input = argv[i];
    }
    if (!output || !input) return fail("usage", "tileiras-passthrough [options] -o OUTPUT INPUT");
    char *header = NULL, *bytecode = NULL;
    size_t header_bytes = 0, length = 0, room = 0;
    FILE *text = open_memstream(&header, &header_bytes);
    if (read_entries(input, text)) return 1;
    fputs("end\n", text);
    fclose(text);
    FILE *in = fopen(input, "rb");
    if (!in) return fail("cannot read", input);
    for (size_t got = 1; got; length += got) {
        if (length == room) bytecode = realloc(bytecode, room = room ? room * 2 : 1 << 16);
        got = fread(bytecode + length, 1, room - length, in);
    }
    fclose(in);
    FILE *out = fopen(output, "wb");
    if (!out) return fail("cannot write", output);
    size_t first = strlen(HEADER_MAGIC) + 11;
    fprintf(out, "%s%010zu\n", HEADER_MAGIC, first + header_bytes + length);
    fwrite(header, 1, header_bytes, out);
    fwrite(bytecode, 1, length, out);
    return fclose(out) ? fail("cannot write", output) : 0;
}
