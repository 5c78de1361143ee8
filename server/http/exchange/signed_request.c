/* Checks signatures, and keeps what they say about the body for the handlers. */
#include "http/exchange/signed_request.h"

#include <string.h>

#include "http/exchange/request_state.h"

/* --- the body --- */

const struct sigv4_body *signed_request_body(struct request *request)
{
    struct request_state *state = request_state(request);
    const char *stated;

    if (state->signed_body != NULL)
        return state->signed_body;
    state->signed_body = request_allocate(request, sizeof(*state->signed_body));
    if (state->signed_body == NULL)
        return NULL;
    stated = request_header(request, "x-amz-content-sha256");
    sigv4_payload_read(zt_text_from(stated != NULL ? stated : ""), state->signed_body);
    return state->signed_body;
}
