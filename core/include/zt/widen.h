/* Exact widening: floats of 16 bits and fewer, and GGUF's quantized blocks as ggml dequantizes
 * them, become f32.
 *
 * Elements come in blocks: one element of f16, 32 of gguf.q4_0/1, 256 of gguf.q4_k/1. A widener
 * knows the blocks of one type; it has no state. */
#ifndef ZT_WIDEN_H
#define ZT_WIDEN_H

#include "zt/model.h"
#include "zt/source.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

struct zt_widener;

/* What widens the elements of a component, or NULL if they cannot be widened exactly, or the
 * component does not hold a dense or quantized tensor's elements. f32 itself passes unchanged.
 * Static, never freed. */
const struct zt_widener *zt_widener_find(const struct zt_object *object,
                                         const struct zt_component *component);

/* The same for looking at numbers (zt/elements.h): what widens packed integers of less than a byte
 * too (i4, u4, i2, u2), which f32 holds exactly but which are not floats. */
const struct zt_widener *zt_widener_find_numbers(const struct zt_object *object,
                                                 const struct zt_component *component);

/* Of one block. */
unsigned zt_widener_elements(const struct zt_widener *widener);
unsigned zt_widener_bytes(const struct zt_widener *widener);

/* Whether the elements are f32 already. */
bool zt_widener_passes(const struct zt_widener *widener);

/* The most elements of any widener's block. */
#define ZT_WIDEN_ELEMENTS_MAX 256

/* Widens blocks into count * zt_widener_elements values in the machine's order. Any bits are valid
 * input. blocks needs no alignment; the two do not overlap. */
void zt_widen_blocks(const struct zt_widener *widener, const uint8_t *blocks, size_t count,
                     float *out_values);

/* Opens a source of 4 * elements bytes, little-endian f32, that reads the decoded bytes of a
 * component from base in stored and widens them. It caches no data; threads may share it. stored is
 * borrowed. elements need not be a multiple of a block: the last one is cut. ZT_LIMIT if the length
 * does not fit in 64 bits, ZT_NO_MEMORY. */
enum zt_status zt_widened_open(const struct zt_widener *widener, struct zt_source *stored,
                               uint64_t base, uint64_t elements, struct zt_source **out_source,
                               struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
