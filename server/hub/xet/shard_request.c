/* POST /api/cas/{session}/v1/shards: the files of an upload, assembled before the response. */
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
    uint64_t claimed; /* claimed disk space for the shard's unwritten bytes */
    bool has_turn;
    bool is_over; /* the assembly is finished */
    struct failure failure;
};

/* Called before the request leaves the session. */
static void release(void *thing)
{
    struct shard_request *self = thing;

    assembly_clear(&self->assembly);
    xet_session_return_space(self->session, self->claimed);
    self->claimed = 0;
    if (self->has_turn)
        xet_session_end_turn(self->session, self->assembly.is_done);
    self->has_turn = false;
}

/* The shard's content is checked through its files. */
static void receive(struct request *request, const struct body_piece *piece)
{
    struct shard_request *self = request->context;

    if (!self->failure.is_set &&
        xet_session_write(self->session, self->assembly.offset + self->arrived, piece->bytes,
                          piece->length, &self->failure)) {
        self->arrived += piece->length;
        self->claimed -= piece->length;
    }
}

static const struct body_receiver receiver = {.receive = receive, .on_workers = true};

void xet_shard_begin(struct request *request)
{
    bool sees_all;
    struct xet_session *session = xet_permit(request, XET_SHARD_BYTES_MAX, &sees_all);
    struct shard_request *self;

    if (session == NULL)
        return;
    self = request_new_context(request, sizeof(*self));
    if (self == NULL)
        return;
    request->receiver = &receiver;
    request_hold(request, self, release);
    self->session = session;
    self->assembly.server = request->server;
    self->assembly.session = session;
    self->assembly.sees_all = sees_all;
    self->assembly.length = request_body_length(request);
    if (!xet_session_reserve(session, self->assembly.length, &self->assembly.offset,
                             &self->failure))
        hub_refuse_failure(request, &self->failure, 0);
    else
        self->claimed = self->assembly.length;
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
    /* Releases the turn at once for other requests, and not only when the response has been
     * sent. */
    release(self);
    return reply(request, self);
}
