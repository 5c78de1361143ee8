/* Finds the model, object and component that a request's path names. */
#ifndef API_RESOLVE_H
#define API_RESOLVE_H

#include "catalog/generation.h"
#include "http/exchange/problem.h"
#include "http/exchange/request.h"

/* Finds the model of the path's first name and holds it in request->generation. Returns false if
 * the request has been answered (400, 404, 422) or must wait; the handler then returns
 * *out_outcome. Repeated calls cost nothing. */
bool model_resolve(struct request *request, enum outcome *out_outcome);

/* Returns the problem for a file that cannot be read as a model: 422 invalid-model, unless the
 * server is at fault. */
enum problem problem_of_unreadable(const struct generation *generation);

/* Return the object of the path's second name, and the component of its third; after model_resolve.
 * Return NULL if they have replied with 404. */
const struct zt_object *object_resolve(struct request *request);
const struct zt_component *component_resolve(struct request *request,
                                             const struct zt_object *object);

#endif
