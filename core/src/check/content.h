/* The content rules of types and layouts, and reading components word by word to check them. */
#ifndef ZT_CHECK_CONTENT_H
#define ZT_CHECK_CONTENT_H

#include <stdbool.h>

#include "zt/decode.h"
#include "zt/shards.h"

/* The longest record: 64 indices and a value (zTensor 0.1's coordinate list). */
#define ZT_CONTENT_RECORD_MAX 520

/* A check of one object. */
struct zt_content {
    const struct zt_model *model;
    const struct zt_object *object;
    const uint64_t *shape;
    const struct zt_files *files;
    struct zt_error *error;
};

/* A component's decoded bytes, buffered. */
struct zt_content_reader {
    const struct zt_content *content;
    const struct zt_component *component;
    struct zt_decoder *decoder;
    uint8_t *buffer;
    size_t length;
    size_t position;
    unsigned width;
    bool is_signed;
};

/* Fails with ZT_INVALID and the format's rule "LayoutData", naming object and component, at the
 * component's offset. */
enum zt_status zt_content_fail(const struct zt_content *content,
                               const struct zt_component *component, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Finds a component of the object; NULL if no component has that name. */
const struct zt_component *zt_content_find(const struct zt_content *content, const char *name);

/* Opens a reader of words of the component's dtype. ZT_UNSUPPORTED if the component is in a missing
 * shard or its encoding is unknown. Errors name object and component. */
enum zt_status zt_content_reader_open(struct zt_content_reader *reader,
                                      const struct zt_content *content,
                                      const struct zt_component *component);

/* Reads length (at most ZT_CONTENT_RECORD_MAX) bytes; *out_got is false if fewer bytes are left. */
enum zt_status zt_content_reader_bytes(struct zt_content_reader *reader, void *bytes, size_t length,
                                       bool *out_got);

/* Reads one word as an index. ZT_INVALID if it is negative. */
enum zt_status zt_content_reader_index(struct zt_content_reader *reader, uint64_t *out_index,
                                       bool *out_got);

/* Returns the buffered bytes, at least one, and moves past them; *out_length is 0 at the end. */
enum zt_status zt_content_reader_run(struct zt_content_reader *reader, const uint8_t **out_bytes,
                                     size_t *out_length);

/* Reads to the end. *out_bytes is the number of bytes that were left; out_bytes may be NULL. */
enum zt_status zt_content_reader_drain(struct zt_content_reader *reader, uint64_t *out_bytes);

void zt_content_reader_close(struct zt_content_reader *reader);

/* --- the layouts' rules, one file for each family --- */

enum zt_status zt_content_csr(const struct zt_content *content);
enum zt_status zt_content_coo(const struct zt_content *content);
/* Sparse blobs of zTensor 0.1. */
enum zt_status zt_content_zt01_coo(const struct zt_content *content);
enum zt_status zt_content_zt01_csr(const struct zt_content *content);

/* Whether all keys differ. Reorders the keys. */
bool zt_keys_unique(uint64_t *keys, size_t count);

#endif
