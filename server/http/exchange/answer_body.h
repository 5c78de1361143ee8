/* Which bytes of a representation are sent: all, a range, or several (RFC 9110 section 14). */
#ifndef HTTP_EXCHANGE_ANSWER_BODY_H
#define HTTP_EXCHANGE_ANSWER_BODY_H

#include "http/exchange/request.h"

/* Once the representation is prepared: reads Range and If-Range and, where ranges are to be sent,
 * sets the state's ranged, range and parts_type and the answer's segments and length. A range that
 * cannot be satisfied replaces the reply by 416. */
void answer_body_choose(struct request *request);

/* Makes the answer's segments those of what was chosen, or of the whole: after a reply that failed
 * since too, whose ranges are forgotten. None for HEAD and 304. */
void answer_body_settle(struct request *request);

#endif
