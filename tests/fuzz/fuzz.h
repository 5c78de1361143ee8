/* What the fuzz targets share. Each target_*.c defines LLVMFuzzerTestOneInput; libFuzzer calls it
 * with its own inputs (tests/fuzz/run.sh), replay.c with the kept files. A broken promise ends the
 * program. */
#ifndef FUZZ_H
#define FUZZ_H

#include "zt/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* Prints what broke and aborts, so that the input is kept. */
_Noreturn void fuzz_broken(const char *file, int line, const char *promise);
#define FUZZ_ASSERT(promise) ((promise) ? (void)0 : fuzz_broken(__FILE__, __LINE__, #promise))

/* --- containers --- */

typedef enum zt_status fuzz_open(struct zt_source *source, struct zt_model **out_model,
                                 struct zt_error *error);

/* Opens the bytes by one reader and, if they open, exercises the model: names, bounds, attributes,
 * decoding, digests, content rules, canonical form. */
void fuzz_container(const uint8_t *bytes, size_t length, fuzz_open *open);

/* The same, and then again with a copy of the bytes that repair has changed, if it returns true. */
void fuzz_container_repaired(const uint8_t *bytes, size_t length, fuzz_open *open,
                             bool (*repair)(uint8_t *bytes, size_t length));

/* Asserts what is true of every failure, whichever function it came from. limit is the length of
 * the file. */
void fuzz_failure(enum zt_status status, const struct zt_error *error, uint64_t limit);

/* Watches memory until fuzz_held, which returns whether it stayed within what the file's length
 * allows. */
void fuzz_hold_at_most(size_t file_length);
bool fuzz_held(void);

/* --- repairs: as an attacker would do them, so that no hash keeps the fuzzer out --- */

bool fuzz_repair_zt2(uint8_t *bytes, size_t length);
bool fuzz_repair_mag(uint8_t *bytes, size_t length);
bool fuzz_repair_zip(uint8_t *bytes, size_t length);

/* --- texts --- */

/* The input as a C string (cut at a NUL); the caller frees it. */
char *fuzz_string(const uint8_t *bytes, size_t length);

#endif
