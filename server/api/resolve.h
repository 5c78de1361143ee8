/* From the names in a request's path to the model, object and component that they mean. */
#ifndef API_RESOLVE_H
#define API_RESOLVE_H

#include "catalog/generation.h"
#include "http/exchange/problem.h"
#include "http/exchange/request.h"

#define STORE_UNAVAILABLE_DETAIL \
    "the object store does not answer; what is not cached is not served now"

/* Finds the model of the path's first name and holds it in request->generation. False: the handler
 * returns *out_outcome, since the request has been answered (400, 404, 422) or must wait. Repeated
 * calls cost nothing. */
bool model_resolve(struct request *request, enum outcome *out_outcome);

/* The problem of a file that cannot be read as a model: 422 invalid-model, unless the server is at
 * fault. */
enum problem problem_of_unreadable(const struct generation *generation);

/* The object of the path's second name, the component of its third; after model_resolve. NULL:
 * replied with 404. */
const struct zt_object *object_resolve(struct request *request);
const struct zt_component *component_resolve(struct request *request,
                                             const struct zt_object *object);

#endif
