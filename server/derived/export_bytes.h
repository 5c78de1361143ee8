/* The bytes of exported components: from the file where they are stored as they are, decoded where
 * they are not. For worker threads, since decoding takes its time; what was decoded last is held,
 * so that whoever reads on does not wait again. */
#ifndef DERIVED_EXPORT_BYTES_H
#define DERIVED_EXPORT_BYTES_H

#include "base/server.h"
#include "catalog/generation.h"
#include "zt/component_view.h"
#include "zt/select.h"

/* How one component of an exported file comes from a component of a generation. */
struct export_part {
    uint32_t object; /* of the generation's model */
    uint32_t component;
    uint8_t from_width; /* as in struct zt_component_view */
    uint8_t to_width;
    bool is_signed;
};

/* Where bytes are to go. */
struct export_buffer {
    void *at;
    size_t length;
};

struct export_bytes;

/* Borrows the generation, and cut: how every part is cut, NULL for whole ones. NULL when memory is
 * out. */
struct export_bytes *export_bytes_new(struct server *server, struct generation *generation,
                                      const struct zt_cut *cut);
/* Takes NULL; void * so that it fits request_hold. */
void export_bytes_free(void *bytes);

/* Reads length bytes at offset of a part; error must not be NULL. Errors name object and component.
 */
enum zt_status export_bytes_read(struct export_bytes *bytes, const struct export_part *part,
                                 uint64_t offset, struct export_buffer buffer,
                                 struct zt_error *error);

/* Where the part lies as it is in a file, without being decoded, gathered or changed. False where
 * it does not. */
bool export_bytes_stored(const struct export_bytes *bytes, const struct export_part *part,
                         struct zt_source **out_source, uint64_t *out_offset);

#endif
