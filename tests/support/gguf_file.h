/* GGUF files built piece by piece, so that a test can break any piece. */
#ifndef ZT_TEST_GGUF_FILE_H
#define ZT_TEST_GGUF_FILE_H

#include "cbor/cbor_write.h"
#include "container.h"

struct gguf_file {
    struct zt_buffer bytes;
    uint64_t tensors;
    uint64_t pairs;
};

/* Puts a head of version 3 into a cleared file. */
void gguf_begin(struct gguf_file *file);
void gguf_put(struct gguf_file *file, uint64_t value, unsigned length_bytes);
void gguf_put_string(struct gguf_file *file, const char *text);
/* Puts a key and the type of its value; the value comes next. */
void gguf_put_key(struct gguf_file *file, const char *key, uint32_t type);
/* Puts a tensor's entry without its offset; dims are in the file's order, fastest first. */
void gguf_put_tensor(struct gguf_file *file, const char *name, unsigned rank, const uint64_t *dims,
                     uint32_t type);
/* Puts the offset, after gguf_put_tensor. */
void gguf_put_offset(struct gguf_file *file, uint64_t offset);

/* Puts the counts into the head, pads to the alignment, appends data_length bytes (byte n is n mod
 * 251) and moves the whole into the container, whose previous file is freed. Pads nothing if
 * data_length is 0. */
void gguf_finish(struct gguf_file *file, unsigned alignment, size_t data_length,
                 struct container *container);

/* Finishes the file with an alignment of 32, and fails the running test unless it is refused by
 * that rule at that offset. */
void gguf_assert_refused(struct gguf_file *file, size_t data_length, const char *rule,
                         uint64_t offset);

#endif
