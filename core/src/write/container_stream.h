/* zTensor written as its data arrives: places and digests are found on the way and stand in the
 * manifest at the end. */
#ifndef ZT_WRITE_CONTAINER_STREAM_H
#define ZT_WRITE_CONTAINER_STREAM_H

#include "write/container.h"
#include "zt/writer.h"

struct zt_container_stream;

/* out is borrowed; options are those of zt/writer.h. */
enum zt_status zt_container_stream_begin(const struct zt_projection *projection,
                                         const struct zt_writer_options *options,
                                         const struct zt_sink *out,
                                         struct zt_container_stream **out_stream,
                                         struct zt_error *error);
/* Each component at most once. */
enum zt_status zt_container_stream_component(struct zt_container_stream *stream, uint32_t component,
                                             struct zt_error *error);
enum zt_status zt_container_stream_append(struct zt_container_stream *stream, const void *bytes,
                                          size_t length, struct zt_error *error);
/* Ends the current component. */
enum zt_status zt_container_stream_end(struct zt_container_stream *stream, struct zt_error *error);
/* Writes manifest and footer. */
enum zt_status zt_container_stream_finish(struct zt_container_stream *stream,
                                          struct zt_error *error);
/* Takes NULL. */
void zt_container_stream_free(struct zt_container_stream *stream);

#endif
