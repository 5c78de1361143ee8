/* POST /api/cas/{session}/v1/xorbs/default/{hash}: chunks, stored as they arrive. */
#include <stdio.h>
#include <stdlib.h>

#include "base/hex.h"
#include "base/little_endian.h"
#include "hub/write/hub_refusal.h"
#include "hub/xet/handlers.h"
#include "hub/xet/permit.h"
#include "upload/shared/write_checks.h"

struct xorb_request {
    struct xet_session *session;
    struct xet_xorb xorb;
    uint64_t length;  /* of the body */
    uint64_t arrived; /* of it */
    uint64_t claimed; /* claimed disk space that has not been written */
    bool is_known;    /* it was sent before, and is dropped */
    struct failure failure;
    struct xorb_layout layout;
};

/* Reads a hash from a path: four numbers in hex, most significant digit first. */
static bool read_hash(struct zt_text text, uint8_t out_hash[32])
{
    uint8_t bytes[32];

    if (!zt_hex_read_lower(text, bytes, sizeof(bytes)))
        return false;
    for (size_t i = 0; i < sizeof(bytes); i++)
        out_hash[i] = bytes[i / 8 * 8 + 7 - i % 8];
    return true;
}

/* Called before the request leaves the session. */
static void give_back(void *thing)
{
    struct xorb_request *self = thing;

    xet_session_return_space(self->session, self->claimed);
    self->claimed = 0;
}

/* Reserves space for the bytes, and for the table of chunk ends after them. */
static void reserve(struct request *request, struct xorb_request *self)
{
    const uint64_t table = sizeof(self->layout.ends);

    if (!xet_session_reserve(self->session, self->length + table, &self->xorb.offset,
                             &self->failure)) {
        hub_refuse_failure(request, &self->failure, 0);
        return;
    }
    self->xorb.ends = self->xorb.offset + self->length;
    self->claimed = self->length + table;
    request_hold(request, self, give_back);
}

/* The xorb's hash is not checked (session.h). */
static void receive(struct request *request, const struct body_piece *piece)
{
    struct xorb_request *self = request->context;

    if (self->failure.is_set || self->is_known)
        return;
    if (!xorb_layout_take(&self->layout, piece->bytes, piece->length)) {
        failure_refuse(&self->failure, PROBLEM_INVALID_REQUEST, "this is not a xorb: %s",
                       self->layout.mistake);
        return;
    }
    if (xet_session_write(self->session, self->xorb.offset + self->arrived, piece->bytes,
                          piece->length, &self->failure)) {
        self->arrived += piece->length;
        self->claimed -= piece->length;
    }
}

static const struct body_receiver receiver = {.receive = receive, .on_workers = true};

void xet_xorb_begin(struct request *request)
{
    bool sees_all;
    struct xet_session *session = xet_permit(request, XORB_BYTES_MAX, &sees_all);
    struct xorb_request *self;
    struct xet_xorb known;

    if (session == NULL)
        return;
    self = request_new_context(request, sizeof(*self));
    if (self == NULL)
        return;
    self->session = session;
    self->length = request_body_length(request);
    request->receiver = &receiver;
    if (!read_hash(request->names[1], self->xorb.hash)) {
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "a xorb's name must be 64 lower-case hex digits");
        return;
    }
    self->is_known = xet_session_find(session, self->xorb.hash, &known);
    if (!self->is_known)
        reserve(request, self);
}

/* The table is small, and is stored after the bytes. */
static bool write_ends(struct xorb_request *self)
{
    uint8_t *table = (uint8_t *)self->layout.ends;
    const size_t count = self->layout.count;

    for (size_t i = 0; i < count; i++)
        zt_store_le32(table + 4 * i, self->layout.ends[i]);
    if (!xet_session_write(self->session, self->xorb.ends, table, 4 * count, &self->failure))
        return false;
    self->claimed -= 4 * count;
    return true;
}

static bool finish(struct xorb_request *self)
{
    if (self->failure.is_set)
        return false;
    if (!xorb_layout_finish(&self->layout))
        return failure_refuse(&self->failure, PROBLEM_INVALID_REQUEST, "this is not a xorb: %s",
                              self->layout.mistake);
    self->xorb.chunk_count = self->layout.count;
    return write_ends(self) && xet_session_add(self->session, &self->xorb, &self->failure);
}

enum outcome xet_xorb_handle(struct request *request)
{
    static const char inserted[] = "{\"was_inserted\":true}\n";
    static const char known[] = "{\"was_inserted\":false}\n";
    struct xorb_request *self = request->context;

    if (self->is_known)
        reply_json(request, 200, known, sizeof(known) - 1);
    else if (finish(self))
        reply_json(request, 200, inserted, sizeof(inserted) - 1);
    else
        return hub_refuse_failure(request, &self->failure, 0);
    return OUTCOME_READY;
}
