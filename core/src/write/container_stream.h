/* Writing zTensor as a stream: places and digests become known as the data arrives, and are written
 * into the manifest at the end. */
#ifndef ZT_WRITE_CONTAINER_STREAM_H
#define ZT_WRITE_CONTAINER_STREAM_H

#include "write/container.h"
#include "zt/writer.h"

struct zt_container_stream;

/* Writes the head. out is borrowed; options are those of zt/writer.h. */
enum zt_status zt_container_stream_begin(const struct zt_projection *projection,
                                         const struct zt_writer_options *options,
                                         const struct zt_sink *out,
                                         struct zt_container_stream **out_stream,
                                         struct zt_error *error);
/* Begins a component. Each component may be written only once. */
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
