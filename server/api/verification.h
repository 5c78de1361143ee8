/* GET and POST /v1/models/{model}/verification: what is known of a model's digests, and hashing all
 * of them. */
#ifndef API_VERIFICATION_H
#define API_VERIFICATION_H

#include "http/exchange/request.h"

enum outcome verification_get(struct request *request);
enum outcome verification_post(struct request *request);

#endif
