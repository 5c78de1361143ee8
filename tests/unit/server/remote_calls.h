/* The HTTP client (remote/remote.h) for tests that answer themselves, before remote_begin returns:
 * all of it but remote_run. */
#ifndef REMOTE_CALLS_H
#define REMOTE_CALLS_H

#include "tests.h"

#include "remote/remote.h"

enum zt_status remote_start(const struct remote_options *options, struct remote **out_remote,
                            struct zt_error *error)
{
    (void)options;
    (void)out_remote;
    return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "not in tests");
}

void remote_stop(struct remote *remote)
{
    (void)remote;
}

void remote_load(struct remote *remote, struct remote_load *out_load)
{
    (void)remote;
    *out_load = (struct remote_load){0, 0, 0};
}

void remote_exchange_init(struct remote_exchange *exchange)
{
    memset(exchange, 0, sizeof(*exchange));
    exchange->head.content_length = UINT64_MAX;
}

void remote_exchange_free(struct remote_exchange *exchange)
{
    free(exchange->answer);
    exchange->answer = NULL;
}

void remote_begin(struct remote *remote, struct remote_exchange *exchange)
{
    (void)remote_run(remote, exchange);
    exchange->done(exchange);
}

#endif
