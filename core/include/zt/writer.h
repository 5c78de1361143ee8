/* Writing a container, front to back, into a sink.
 *
 *     zt_writer_begin(projection, options, &sink, &writer, &error);
 *     while (zt_writer_next(writer, &number)) {             the writer's order, not the model's
 *         zt_writer_component(writer, number, &error);
 *         zt_writer_append(writer, bytes, length, &error);  as often as needed: decoded bytes
 *     }
 *     zt_writer_finish(writer, &error);
 *     zt_writer_free(writer);
 *
 * The same projection and bytes give the same file, in whatever pieces they are appended. The
 * writer holds at most one block of data. After a failure, only zt_writer_free may follow; what the
 * sink got is not a file. */
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
    /* For targets whose zt_target_fingerprint is true; borrowed until zt_writer_free. */
    const struct zt_fingerprint *fingerprints;
};

struct zt_writer;

/* The projection is borrowed until zt_writer_free. zTensor 1.2 and 2 accept components in any order
 * and of unknown length. The others need exactly the order of zt_writer_next, as does canonical
 * zTensor 2, which asks for only the first of several components with the same bytes. options may
 * be NULL. ZT_ARGUMENT for options that the target lacks. */
enum zt_status zt_writer_begin(const struct zt_projection *projection,
                               const struct zt_writer_options *options, const struct zt_sink *sink,
                               struct zt_writer **out_writer, struct zt_error *error);

/* The next component to write; false after the last. */
bool zt_writer_next(const struct zt_writer *writer, uint32_t *out_component);

/* Ends the current component and begins this one. ZT_ARGUMENT if fewer bytes were appended than
 * declared, if this one was written already, or if another comes first. */
enum zt_status zt_writer_component(struct zt_writer *writer, uint32_t component,
                                   struct zt_error *error);

/* ZT_ARGUMENT for more bytes than declared: none of them is taken. */
enum zt_status zt_writer_append(struct zt_writer *writer, const void *bytes, size_t length,
                                struct zt_error *error);

/* Ends the last component and writes what follows the data. ZT_ARGUMENT if components are
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
