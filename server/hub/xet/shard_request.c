/* POST /api/cas/{session}/v1/shards: the files of an upload, put together before the answer. */
#include <stdio.h>

#include "hub/write/hub_refusal.h"
#include "hub/xet/assembly.h"
#include "hub/xet/handlers.h"
#include "hub/xet/permit.h"
#include "upload/shared/write_checks.h"

struct shard_request {
    struct xet_session *session;
    struct assembly assembly;
    uint64_t arrived;
    bool has_turn;
    bool is_over; /* assembly has nothing more to do */
    struct failure failure;
};

/* Before the session is left. */
static void release(void *thing)
{
    struct shard_request *self = thing;

    assembly_clear(&self->assembly);
    if (self->has_turn)
        xet_session_end_turn(self->session, self->assembly.is_done);
    self->has_turn = false;
}

void xet_shard_begin(struct request *request)
{
    bool sees_all;
    struct xet_session *session = xet_permit(request, XET_SHARD_BYTES_MAX, &sees_all);
    struct shard_request *self;

    if (session == NULL)
        return;
    self = write_context(request, sizeof(*self));
    if (self == NULL)
        return;
    request_hold(request, self, release);
    self->session = session;
    self->assembly.server = request->server;
    self->assembly.session = session;
    self->assembly.sees_all = sees_all;
    self->assembly.length = request_body_length(request);
    if (!xet_session_reserve(session, self->assembly.length, &self->assembly.offset,
                             &self->failure))
        hub_refuse_failure(request, &self->failure, 0);
}

static void take(struct shard_request *self, const void *bytes, size_t length)
{
    if (!self->failure.is_set &&
        xet_session_write(self->session, self->assembly.offset + self->arrived, bytes, length,
                          &self->failure))
        self->arrived += length;
}

void xet_shard_receive(struct request *request, const void *bytes, size_t length)
{
    take(request->context, bytes, length);
}

void xet_shard_store(struct request *request, const struct body_piece *piece)
{
    take(request->context, piece->bytes, piece->length);
}

/* What the shard says is checked against its files. */
void xet_shard_digest(struct request *request, const struct body_piece *piece)
{
    (void)request;
    (void)piece;
}

static void work(struct request *request)
{
    struct shard_request *self = request->context;

    self->is_over = !assembly_step(&self->assembly);
}

static enum outcome reply(struct request *request, const struct shard_request *self)
{
    static const char performed[] = "{\"result\":1}\n";

    if (!self->assembly.is_done)
        return hub_refuse_failure(request, &self->assembly.failure, 0);
    reply_json(request, 200, performed, sizeof(performed) - 1);
    return OUTCOME_READY;
}

enum outcome xet_shard_handle(struct request *request)
{
    struct shard_request *self = request->context;

    if (self->failure.is_set)
        return hub_refuse_failure(request, &self->failure, 0);
    if (!self->has_turn) {
        self->has_turn = xet_session_take_turn(self->session, request_waiter(request));
        if (!self->has_turn)
            return OUTCOME_WAITING;
    }
    if (!self->is_over)
        return request_work_long(request, work);
    /* For others at once, and not only when the answer has been sent. */
    release(self);
    return reply(request, self);
}
