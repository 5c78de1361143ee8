/* From the names in a request's path to the model, object and component they mean. */
#ifndef API_RESOLVE_H
#define API_RESOLVE_H

#include "base/json_write.h"
#include "catalog/generation.h"
#include "http/exchange/problem.h"
#include "http/exchange/request.h"

/* Finds the model that the path's first name means and holds it in request->generation. False: the
 * handler returns *out_outcome, because the answer is settled (400, 404, 422) or has to wait.
 * Called again it costs nothing. */
bool model_resolve(struct request *request, enum outcome *out_outcome);

/* How a file that cannot be read as a model is answered and listed: 422 invalid-model, unless the
 * server is at fault. */
enum problem problem_of_unreadable(const struct generation *generation);

/* The object of the path's second name, the component of its third. NULL: replied with 404. After
 * model_resolve. */
const struct zt_object *object_resolve(struct request *request);
const struct zt_component *component_resolve(struct request *request,
                                             const struct zt_object *object);

/* The names' beginning that prefix asks for, "" where it is absent. False: replied with 400. */
bool query_prefix(struct request *request, struct zt_text *out_prefix);

/* A query parameter that is a switch: absent, "0" and "false" are false; "", "1" and "true" are
 * true. False: replied with 400. */
bool query_switch(struct request *request, const char *name, bool *out_value);

/* A JSON text that the request keeps until its last byte is sent; NULL (replied with a problem)
 * when memory is out. */
struct json *request_json(struct request *request, bool pretty);

/* Makes the text of request_json the reply, 200. When writing it failed: a problem. */
enum outcome reply_written(struct request *request, struct json *json);

/* 422: a valid manifest whose JSON would be out of proportion (manifest_write). */
enum outcome problem_reply_too_long(struct request *request);

#endif
