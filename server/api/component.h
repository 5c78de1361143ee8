/* A request for a component's bytes: component.c answers it, component_query.c reads the query,
 * component_bytes.c prepares the bytes. */
#ifndef API_COMPONENT_H
#define API_COMPONENT_H

#include "catalog/generation.h"
#include "http/exchange/problem.h"
#include "http/exchange/request.h"
#include "zt/slice.h"
#include "zt/widen.h"

/* VIEW_CODED: the stored bytes as the content coding zstd. */
enum view_form { VIEW_DECODED, VIEW_STORED, VIEW_CODED };

struct frames_opening;

/* Which bytes of a component are requested, and in which form. */
struct component_view {
    const struct zt_object *object;
    const struct zt_component *component;
    uint32_t index;
    enum view_form form;
    const struct zt_slice *slice; /* NULL: all of it */
    /* Where the file holds what is asked of a component with strides, or all of it if it is
     * widened; NULL: it is decoded. */
    const struct zt_slice *gathered;
    /* Makes f32 of the elements; NULL: they are sent as they are. slice is then one of f32. */
    const struct zt_widener *widener;
    const uint8_t *npy_head; /* NULL: not as NPY */
    size_t npy_head_length;
    uint64_t tensor_bytes;      /* decoded, of the whole tensor, or ZT_LENGTH_UNKNOWN: no array */
    bool varies_by_accept;      /* an Accept field could make it NPY, or unacceptable */
    bool varies_by_coding;      /* an Accept-Encoding field could make it coded */
    bool passthrough_sought;    /* a worker has called passthrough_find */
    enum component_state state; /* the result of verification */
    struct frames_opening *opening; /* of component_bytes.c */
};

/* Finds object and component and reads the query. NULL: replied with a problem. */
struct component_view *component_view_read(struct request *request);

/* The suffix of the tag: the component's index, "-" and 32 hex digits for a slice, form and format,
 * NUL. Views whose bytes could differ have different ones. */
#define COMPONENT_TAG_SIZE 64
void component_view_tag(const struct component_view *view, char out_suffix[COMPONENT_TAG_SIZE]);

/* The shape of what is sent: the slice's, else the object's. */
const uint64_t *component_view_shape(const struct request *request,
                                     const struct component_view *view, unsigned *out_rank);

/* Reads slice, or shard and axis, of the query for a tensor, into view->slice. False: replied. */
bool component_view_cut(struct request *request, struct component_view *view,
                        const struct zt_slice_tensor *tensor);

/* Has the component verified, as before any answer from its bytes, and sets view->state. May be
 * WAITING; a component that must not be sent has been replied to. */
enum outcome component_verify(struct request *request, struct component_view *view);

/* Bytes of all elements as f32. */
uint64_t component_view_widened_bytes(const struct request *request,
                                      const struct component_view *view);

/* Puts the bytes into the reply, or the steps that first verify and decode them. request->context
 * is the view. */
void component_prepare(struct request *request);

/* Replies with a problem about the component, whose object, name and offset become members. Always
 * OUTCOME_READY. */
enum outcome component_problem(struct request *request, const struct component_view *view,
                               enum problem problem, enum zt_status status, const char *message);

/* The same for a component that, decoded, would exceed limits.decoded_bytes. */
enum outcome component_problem_too_large(struct request *request,
                                         const struct component_view *view);

/* The same for a component whose bytes could not be read or decoded, by what error says; without a
 * word about the component where the store of models is away. */
enum outcome component_problem_unreadable(struct request *request,
                                          const struct component_view *view,
                                          const struct zt_error *error);

#endif
