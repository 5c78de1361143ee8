/* Refusals that every write has in common, before a byte of its body: each true when it replied. In
 * the order of the contract (http-api, section 6). */
#ifndef UPLOAD_SHARED_WRITE_CHECKS_H
#define UPLOAD_SHARED_WRITE_CHECKS_H

#include "http/exchange/request.h"
#include "http/fields/conditional.h"

bool refuse_read_only(struct request *request);
/* A name that is none, or that no file can have. */
bool refuse_name(struct request *request, struct zt_text name);
/* Content-Encoding, where the body is the bytes themselves. */
bool refuse_coding(struct request *request);
/* Those that a write can have; their texts are the request's. */
struct preconditions preconditions_of_write(struct request *request);
/* Reads the preconditions (their texts are the request's) and compares them with what is known to
 * stand under the name. Where that has to be found out first they are left to publication. */
bool refuse_preconditions(struct request *request, struct zt_text name,
                          struct preconditions *out_preconditions);
/* A declared length that is more than the server takes; UINT64_MAX: not declared. */
bool refuse_large(struct request *request, uint64_t length);
/* The reply for a client that has as many uploads as it may. */
void reply_crowded(struct request *request, unsigned limit, const char *key);
/* The reply for a store that does not take it: no room, or anything else. */
void reply_store_failure(struct request *request, const struct zt_error *error);

#endif
