/* Turns a representation into an answer: chooses the bytes to send (RFC 9110 section 14) and the
 * header fields. */
#ifndef HTTP_EXCHANGE_ANSWER_H
#define HTTP_EXCHANGE_ANSWER_H

#include "http/exchange/request.h"

/* Applies Range and If-Range, once the representation is prepared. If ranges are sent, sets the
 * state's ranged, range and parts_type and the answer's segments and length. If no range can be
 * satisfied, replaces the reply by 416. */
void answer_choose_ranges(struct request *request);

/* Gives the answer the segments of the chosen ranges or of the whole representation; of the whole
 * also if a problem has replaced the reply in the meantime. HEAD and 304 get no segments. */
void answer_take_segments(struct request *request);

/* Returns true if the answer's bytes come from a mirrored file that is not verified yet. */
bool answer_is_unverified(const struct request *request);

/* Writes up to ANSWER_FIELDS (request_state.h) fields and returns their number. The HTTP library
 * writes Content-Length, Date and Connection. */
unsigned answer_write_fields(struct request *request, struct field *out_fields);

#endif
