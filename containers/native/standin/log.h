#ifndef TILEFARM_STANDIN_LOG_H
#define TILEFARM_STANDIN_LOG_H

#include <stddef.h>

/* The folder that receives the log and the modules, or NULL when nothing is to be recorded. */
const char *standin_folder(void);

/* Appends one line to driver.jsonl with a single write. Returns 0, or -1 when it could not. */
int standin_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes `text` as the inside of a JSON string; truncates to fit `size`. */
void standin_quote(char *out, size_t size, const char *text);

/* Records a call of a driver function that the stand-in does not have; returns CUDA_ERROR_NOT_SUPPORTED. */
int standin_missing(const char *name);

/* Address of a function the stand-in exports (newest version of `name`), or NULL. */
void *standin_lookup(const char *name);

#endif
