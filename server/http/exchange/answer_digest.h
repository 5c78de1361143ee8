/* Repr-Digest and Content-Digest of an answer (RFC 9530): known, remembered, or computed because
 * the client wants them. */
#ifndef HTTP_EXCHANGE_ANSWER_DIGEST_H
#define HTTP_EXCHANGE_ANSWER_DIGEST_H

#include "http/exchange/request.h"

/* The last stage before the answer to a GET or HEAD that is 200, once its bytes are chosen. READY:
 * the reply's sha256 and the state's content_sha256 are final, or the bytes cannot be read and the
 * reply is a problem. WAITING: call it again when the request is woken. */
enum outcome answer_digest_find(struct request *request);

#endif
