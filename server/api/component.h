/* A request for a component's bytes: component.c answers it, component_query.c reads the query,
 * component_bytes.c prepares the bytes. */
#ifndef API_COMPONENT_H
#define API_COMPONENT_H

#include "catalog/generation.h"
#include "http/exchange/problem.h"
#include "http/exchange/request.h"
#include "zt/slice.h"
#include "zt/widen.h"

/* VIEW_CODED: the stored bytes as the content coding zstd. VIEW_DIFFERENCE: the difference from a
 * base (coding=xor-zstd). */
enum view_form { VIEW_DECODED, VIEW_STORED, VIEW_CODED, VIEW_DIFFERENCE };

struct frames_opening;
struct difference_view; /* component_difference.c */

/* The requested bytes of a component, and their form. */
struct component_view {
    const struct zt_object *object;
    const struct zt_component *component;
    uint32_t index;
    enum view_form form;
    const struct zt_slice *slice; /* NULL: all of it */
    /* The position of the requested elements in the file, for a component with strides or one that
     * is widened as a whole; NULL: it is decoded. */
    const struct zt_slice *gathered;
    /* Converts the elements to f32; NULL: they are sent unchanged. slice then counts elements of
     * f32. */
    const struct zt_widener *widener;
    const uint8_t *npy_head; /* NULL: not as NPY */
    size_t npy_head_length;
    uint64_t tensor_bytes;      /* decoded, of the whole tensor; ZT_LENGTH_UNKNOWN: not an array */
    bool varies_by_accept;      /* with another Accept field it could be NPY, or unacceptable */
    bool varies_by_coding;      /* with another Accept-Encoding field it could be coded */
    bool passthrough_sought;    /* a worker has called passthrough_find */
    enum component_state state; /* the result of verification */
    struct frames_opening *opening;     /* used by component_bytes.c */
    struct decoded *decoded;            /* also; held; NULL until it is requested */
    struct difference_view *difference; /* of VIEW_DIFFERENCE */
};

/* Finds object and component, and reads the query. Returns NULL if it has replied with a
 * problem. */
struct component_view *component_view_read(struct request *request);

/* Writes the suffix of the ETag: the component's index, "-" and 32 hex digits for slice, form and
 * format, and NUL. Views that could have different bytes have different suffixes. */
#define COMPONENT_TAG_SIZE 64
void component_view_tag(const struct component_view *view, char out_suffix[COMPONENT_TAG_SIZE]);

/* Returns the shape of the response: the slice's if there is one, otherwise the object's. */
const uint64_t *component_view_shape(const struct request *request,
                                     const struct component_view *view, unsigned *out_rank);

/* Reads the query's slice, or shard and axis, for a tensor, into view->slice. Returns false if it
 * has replied. */
bool component_view_cut(struct request *request, struct component_view *view,
                        const struct zt_slice_tensor *tensor);

/* Verifies the component, as before any response with its bytes, and sets view->state. May return
 * WAITING. Replies if the component must not be sent. */
enum outcome component_verify(struct request *request, struct component_view *view);

/* Returns the number of bytes of all elements as f32. */
uint64_t component_view_widened_bytes(const struct request *request,
                                      const struct component_view *view);

/* Adds the bytes to the reply, or the steps that first verify and decode them. request->context is
 * the view. */
void component_prepare(struct request *request);

/* Finds the SHA-256 of exactly the bytes of a view, once it is verified: the one in the file if it
 * was checked, otherwise a computed one. */
bool component_sha256(const struct request *request, const struct component_view *view,
                      uint8_t out_sha256[32]);

/* --- component_difference.c --- */

/* Reads base and coding, of which one is given at least, into view. Returns false if it has
 * replied. */
bool component_difference_read(struct request *request, struct component_view *view,
                               struct zt_text base, struct zt_text coding);

/* Writes the part of the ETag's suffix that identifies the base and the coding, and NUL. Returns
 * its length. */
int component_difference_tag(const struct difference_view *difference, char *out_text, size_t size);

/* Adds the fields of a difference to the reply, and the steps that verify both components and make
 * it. */
void component_difference_prepare(struct request *request);

/* --- problems --- */

/* Replies with a problem about the component, with its object, name and offset as members. Always
 * returns OUTCOME_READY. */
enum outcome component_problem(struct request *request, const struct component_view *view,
                               enum problem problem, enum zt_status status, const char *message);

/* Does the same for a component whose decoded bytes would exceed limits.decoded_bytes. */
enum outcome component_problem_too_large(struct request *request,
                                         const struct component_view *view);

/* Does the same for a component whose bytes could not be read or decoded, as error says. If the
 * store of models is away, the component is not mentioned. */
enum outcome component_problem_unreadable(struct request *request,
                                          const struct component_view *view,
                                          const struct zt_error *error);

#endif
