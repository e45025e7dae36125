#ifndef TILEFARM_STANDIN_HEADER_H
#define TILEFARM_STANDIN_HEADER_H

#include <stddef.h>

/* What tileiras-passthrough puts in front of the bytecode, as text lines:
 *   tilefarm-module TOTAL      length of the whole file in bytes, ten digits
 *   entry NAME WIDTH...        one line an entry: parameter widths in bytes, in order
 *   end
 */
#define HEADER_MAGIC "tilefarm-module "

/* Length of the header in bytes, or 0 when there is none. */
size_t header_length(const char *data, size_t length);

/* Length of header and bytecode in bytes as the header states it, or 0 when there is none. */
size_t header_total(const char *data);

/* Number of the entry's parameters, their widths in `width`, or -1 when there is no such entry. */
int header_entry(const char *data, size_t length, const char *name, unsigned char *width, int most);

#endif
