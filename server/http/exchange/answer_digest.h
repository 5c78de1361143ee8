/* Repr-Digest and Content-Digest of an answer (RFC 9530): known already, or computed because the
 * client wants them. */
#ifndef HTTP_EXCHANGE_ANSWER_DIGEST_H
#define HTTP_EXCHANGE_ANSWER_DIGEST_H

#include "http/exchange/request.h"

/* Runs the last stage before a 200 answer to a GET or HEAD, once its bytes are chosen. Returns
 * READY when the reply's sha256 and the state's content_sha256 are final, or when the bytes cannot
 * be read and the reply is a problem. Returns WAITING if it must be called again when the request
 * is woken. */
enum outcome answer_digest_find(struct request *request);

#endif
