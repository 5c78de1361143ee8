/* From a representation to an answer: which of its bytes are sent (RFC 9110 section 14), and under
 * which header fields. */
#ifndef HTTP_EXCHANGE_ANSWER_H
#define HTTP_EXCHANGE_ANSWER_H

#include "http/exchange/request.h"

/* Once the representation is prepared: reads Range and If-Range. If ranges are to be sent, sets the
 * state's ranged, range and parts_type and the answer's segments and length. If none can be
 * satisfied, replaces the reply by 416. */
void answer_choose_ranges(struct request *request);

/* Gives the answer the segments of the chosen ranges, or of the whole; of the whole too if a
 * problem has replaced the reply since. None for HEAD and 304. */
void answer_take_segments(struct request *request);

/* Writes up to ANSWER_FIELDS (request_state.h) fields and returns their number. Content-Length,
 * Date and Connection are the HTTP library's. */
unsigned answer_write_fields(struct request *request, struct field *out_fields);

#endif
