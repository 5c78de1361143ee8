/* Seeds: small valid inputs for each fuzz target, made by the project's writers and the tests'
 * builders. */
#ifndef FUZZ_SEEDS_H
#define FUZZ_SEEDS_H

#include <stddef.h>

/* Writes one input of a target into the folder that the program was given. */
void seed_put(const char *target, const char *name, const void *bytes, size_t length);
void seed_put_text(const char *target, const char *name, const char *text);

void seeds_zt(void);
void seeds_mag(void);
void seeds_neighbours(void);
void seeds_decoder(void);
void seeds_texts(void);
void seeds_pytorch(void);
void seeds_onnx(void);
void seeds_xet(void);
void seeds_s3(void);

#endif
