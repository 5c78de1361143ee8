/* What of a component a request asks for: slice or shard, NPY, its stored form; and what tells such
 * a view from all others of the component. */
#ifndef API_COMPONENT_VIEW_H
#define API_COMPONENT_VIEW_H

#include "catalog/generation.h"
#include "http/exchange/problem.h"
#include "http/exchange/request.h"
#include "zt/slice.h"

/* VIEW_CODED: the stored bytes, as the content coding zstd. */
enum view_form { VIEW_DECODED, VIEW_STORED, VIEW_CODED };

struct frames_opening;

struct component_view {
    const struct zt_object *object;
    const struct zt_component *component;
    uint32_t index;
    enum view_form form;
    const struct zt_slice *box; /* NULL: all of it */
    const uint8_t *npy_head;    /* NULL: not as NPY */
    size_t npy_head_length;
    uint64_t tensor_bytes; /* of the whole tensor, where it is an array; else ZT_LENGTH_UNKNOWN */
    bool varies_by_accept; /* whether an Accept field could have made it NPY, or refused */
    bool varies_by_coding; /* the same for Accept-Encoding and its coding */
    bool walked;           /* passthrough_find was called */
    enum component_state state;     /* what verifying it said */
    struct frames_opening *opening; /* component_steps.c's */
};

/* Finds object and component and reads the query. NULL: replied with a problem. */
struct component_view *component_view_read(struct request *request);

/* A problem about the view's component: its offset, its object and its name become members. Always
 * OUTCOME_READY. */
enum outcome component_refuse(struct request *request, const struct component_view *view,
                              enum problem problem, enum zt_status status, const char *message);

enum outcome component_refuse_too_large(struct request *request, const struct component_view *view);

/* The component's index, "-" and 32 hex digits for the box, "-npy" or "-zstd", and NUL. */
#define VIEW_TAG_SIZE 64

/* The suffix of the tag: different for views whose bytes could differ. */
void component_view_tag(const struct component_view *view, char out_suffix[VIEW_TAG_SIZE]);

/* The shape of what is sent: the box's, else the object's. */
const uint64_t *component_view_shape(const struct request *request,
                                     const struct component_view *view, unsigned *out_rank);

#endif
