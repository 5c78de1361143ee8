/* Files written into memory by the project's own writers, from a source in memory. */
#ifndef ZT_TEST_WRITTEN_H
#define ZT_TEST_WRITTEN_H

#include "cbor/cbor_write.h"
#include "zt/convert.h"

/* A model, its bytes and its source. */
struct written {
    struct zt_buffer bytes;
    struct zt_source *source;
    struct zt_model *model;
};

/* Opens bytes and takes ownership of them. Fails the running test if they do not open. */
void written_open(struct written *written, struct zt_buffer bytes);
/* A zTensor 1.2 file of a manifest (cbor_text.h) and the data that container.h makes. */
void written_from_text(struct written *written, size_t data_length, const char *manifest);
/* A zTensor 1.2 file of four objects, a to d, that every target can hold; "a" and "c" are the same
 * bytes. */
void written_plain(struct written *written);
/* A coordinate list "x" of two coordinates, whose compressed values have a length that the manifest
 * does not state. */
void written_unknown_length(struct written *written, size_t values_length);
void written_free(struct written *written);

/* Converts; the model is not opened. options may be NULL. */
enum zt_status written_convert(const struct written *from, enum zt_target target,
                               const struct zt_writer_options *options, struct zt_buffer *out_bytes,
                               struct zt_error *error);
/* Converts and opens the result; fails the running test if anything fails. */
void written_make(struct written *written, const struct written *from, enum zt_target target,
                  const struct zt_writer_options *options);

/* A sink that fails at its n-th call, counted from 1; 0 means never. */
struct failing_sink {
    struct zt_buffer bytes;
    unsigned calls;
    unsigned failing_call;
};
struct zt_sink failing_sink(struct failing_sink *state);

/* Reads the decoded bytes of a component of a one-file model; returns their number. */
size_t written_decode(const struct written *written, const char *object, const char *component,
                      void *buffer, size_t capacity);

/* Fails the running test unless both models have the same objects with the same data. */
void assert_same_model(const struct written *a, const struct written *b);

#endif
