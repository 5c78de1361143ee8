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
 * The file depends only on the projection, the options and the bytes, not on how the bytes are
 * split into calls. The writer holds at most one block of data. After a failure only zt_writer_free
 * is allowed, and the bytes that the sink received are not a valid file. */
#ifndef ZT_WRITER_H
#define ZT_WRITER_H

#include "zt/file_plan.h"
#include "zt/sink.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

struct zt_writer_options {
    /* Compress, as zstd in zTensor 1.2 and as zt.zstd-seekable/1 in zTensor 2 (not canonical). */
    bool zstd;
    int zstd_level; /* 1 to 22; 0 for zstd's default, 3 */
    /* Threads of zstd's own that compress (zt/encode.h); 0: none. */
    unsigned zstd_threads;
    /* Write no digests in zTensor 1.2. */
    bool without_digests;
    /* One for each component, for targets whose zt_target_fingerprint is true; borrowed until
     * zt_writer_free. */
    const struct zt_fingerprint *fingerprints;
};

struct zt_writer;

/* Starts a file. The projection is borrowed until zt_writer_free. zTensor 1.2 and 2 accept
 * components in any order and of unknown length. All other targets, including canonical zTensor 2,
 * require exactly the order of zt_writer_next; canonical zTensor 2 is given only the first of
 * several components with the same bytes. options may be NULL. ZT_ARGUMENT for options that the
 * target does not have; ZT_NO_MEMORY; the errors of zt_file_plan_make; the sink's status. */
enum zt_status zt_writer_begin(const struct zt_projection *projection,
                               const struct zt_writer_options *options, const struct zt_sink *sink,
                               struct zt_writer **out_writer, struct zt_error *error);

/* The next component to write, as an index into projection->model->components; false after the last
 * one. */
bool zt_writer_next(const struct zt_writer *writer, uint32_t *out_component);

/* Ends the current component, if any, and begins another. ZT_ARGUMENT if the current one got fewer
 * bytes than declared, or if the new one was already written or is not the next one that the target
 * requires; ZT_NO_MEMORY; the sink's status. */
enum zt_status zt_writer_component(struct zt_writer *writer, uint32_t component,
                                   struct zt_error *error);

/* Appends decoded bytes to the current component. ZT_ARGUMENT if there would be more bytes than
 * declared; ZT_NO_MEMORY; the sink's status. */
enum zt_status zt_writer_append(struct zt_writer *writer, const void *bytes, size_t length,
                                struct zt_error *error);

/* Ends the last component and writes the rest of the file. ZT_ARGUMENT if a component is missing or
 * too short; ZT_NO_MEMORY; the sink's status. */
enum zt_status zt_writer_finish(struct zt_writer *writer, struct zt_error *error);

/* Number of bytes written to the sink so far. */
uint64_t zt_writer_length(const struct zt_writer *writer);

/* Frees the writer, whether finished or not. Takes NULL. */
void zt_writer_free(struct zt_writer *writer);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
