/* Requests to the S3 API that are signed with a key of s3.keys. */
#ifndef HTTP_EXCHANGE_SIGNED_REQUEST_H
#define HTTP_EXCHANGE_SIGNED_REQUEST_H

#include "http/exchange/request.h"
#include "http/fields/sigv4.h"

/* Decides about a request to the S3 API if it is signed, or if only a signature could admit it:
 * sets request->grant and request->client, or replies with an error. Returns false if the rules for
 * all requests decide. Call it only if access keys or other credentials are configured; otherwise
 * signatures are ignored, because S3 clients always send one. */
bool signed_request_authorize(struct request *request);

/* Returns what the body of a request must be: what its verified signature says; if none was
 * verified, because clients need no key or have a token, only what x-amz-content-sha256 says.
 * Lives as long as the request. NULL: out of memory. */
const struct sigv4_body *signed_request_body(struct request *request);

#endif
