#include "hub/xet/permit.h"

#include <string.h>
#include <strings.h>

#include "base/server.h"
#include "http/exchange/problem.h"
#include "hub/write/hub_refusal.h"
#include "hub/write/staged_objects.h"
#include "hub/xet/handlers.h"
#include "hub/xet/token.h"
#include "upload/shared/write_checks.h"

#define SCHEME "Bearer "

static bool read_permit(struct request *request, struct xet_permit *out_permit)
{
    const char *field = request_header(request, "Authorization");

    return field != NULL && strncasecmp(field, SCHEME, sizeof(SCHEME) - 1) == 0 &&
           xet_token_read(zt_text_from(field + sizeof(SCHEME) - 1), time(NULL), out_permit) &&
           out_permit->line != 0 &&
           out_permit->line == access_line_of(request->access, out_permit->client);
}

static bool refuse_length(struct request *request, uint64_t most_bytes)
{
    const uint64_t length = request_body_length(request);

    if (length == UINT64_MAX)
        problem_reply(request, PROBLEM_LENGTH_REQUIRED, "the length of the body is not stated");
    else if (length > most_bytes)
        problem_reply(request, PROBLEM_TOO_LARGE, "the body has more than %llu bytes",
                      (unsigned long long)most_bytes);
    else
        return write_refuse_full(request, length);
    return true;
}

struct xet_session *xet_permit(struct request *request, uint64_t most_bytes, bool *out_sees_all)
{
    struct xet_permit permit;
    struct xet_session_name name;
    struct xet_session *session;
    struct failure failure = {.is_set = false};

    if (write_refuse_read_only(request))
        return NULL;
    if (!read_permit(request, &permit)) {
        problem_reply(request, PROBLEM_UNAUTHORIZED,
                      "this server did not issue the token for an upload by Xet, it has expired, "
                      "or the client's line of the tokens file has changed");
        representation_field(&request->reply, "WWW-Authenticate", "Bearer realm=\"ztserve-xet\"");
        return NULL;
    }
    if (write_refuse_coding(request) || write_refuse_absent_body(request) ||
        refuse_length(request, most_bytes))
        return NULL;
    name = (struct xet_session_name){.key = request->names[0],
                                     .repo = permit.repo,
                                     .owner = staged_owner(request, permit.client)};
    session = xet_session_use(request->server, &name, permit.client, &failure);
    if (session == NULL)
        hub_refuse_failure(request, &failure, 0);
    else
        request_hold(request, session, xet_session_leave);
    *out_sees_all = permit.sees_all;
    return session;
}

/* Looking up chunks, and other kinds of uploads, are not supported. */
enum outcome xet_no_api_handle(struct request *request)
{
    return problem_reply(request, PROBLEM_NOT_FOUND, "there is no such resource");
}
