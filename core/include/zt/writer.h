/* Writing a container, front to back, into a sink.
 *
 *     zt_writer_begin(projection, options, &sink, &writer, &error);
 *     while (zt_writer_next(writer, &number)) {            the writer's order, not the model's
 *         zt_writer_component(writer, number, &error);
 *         zt_writer_append(writer, bytes, length, &error);  as often as needed: decoded bytes
 *     }
 *     zt_writer_finish(writer, &error);
 *     zt_writer_free(writer);
 *
 * The same projection and bytes give the same file, whatever pieces they are appended in. Nothing
 * is held of the data but one block. After a failure only zt_writer_free makes sense; what the sink
 * got is not a file. */
#ifndef ZT_WRITER_H
#define ZT_WRITER_H

#include "zt/file_plan.h"
#include "zt/sink.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

struct zt_writer_options {
    /* Compress: zstd in zTensor 1.2, zt.zstd-seekable/1 in zTensor 2 (not canonical). */
    bool zstd;
    int zstd_level; /* 1 to 22; 0 for zstd's default, 3 */
    /* State no digests in zTensor 1.2. */
    bool without_digests;
    /* For targets that zt_target_fingerprint needs some of; borrowed until zt_writer_free. */
    const struct zt_fingerprint *fingerprints;
};

struct zt_writer;

/* The projection is borrowed until zt_writer_free. zTensor 1.2 and 2 take any order of components
 * and lengths that are not known; the others exactly the order of zt_writer_next, as does canonical
 * zTensor 2, which asks only for the first of the components that are the same bytes. options may
 * be NULL. ZT_ARGUMENT for options that the target has not. */
enum zt_status zt_writer_begin(const struct zt_projection *projection,
                               const struct zt_writer_options *options, const struct zt_sink *sink,
                               struct zt_writer **out_writer, struct zt_error *error);

/* The component that is to be written next; false when all are. */
bool zt_writer_next(const struct zt_writer *writer, uint32_t *out_component);

/* Ends the component before and begins this one. ZT_ARGUMENT when fewer bytes were appended than
 * were declared, for a component that was written already, or one that is not its turn. */
enum zt_status zt_writer_component(struct zt_writer *writer, uint32_t component,
                                   struct zt_error *error);

/* ZT_ARGUMENT for more bytes than were declared: none of them is taken. */
enum zt_status zt_writer_append(struct zt_writer *writer, const void *bytes, size_t length,
                                struct zt_error *error);

/* Ends the last component and writes what comes after the data. ZT_ARGUMENT when components are
 * missing. */
enum zt_status zt_writer_finish(struct zt_writer *writer, struct zt_error *error);

/* Bytes handed to the sink so far. */
uint64_t zt_writer_length(const struct zt_writer *writer);

/* Frees it, finished or not. Takes NULL. */
void zt_writer_free(struct zt_writer *writer);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
