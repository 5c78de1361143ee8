/* What intake.c, which gives work to workers, and intake_read.c, which fills pieces from the
 * socket, know of a body. */
#ifndef HTTP_WIRE_INTAKE_WORK_H
#define HTTP_WIRE_INTAKE_WORK_H

#include <assert.h>

#include "base/workers.h"
#include "http/exchange/request_state.h"
#include "http/limits/deadlines.h"
#include "http/wire/intake.h"

/* Of the page cache. */
#define PAGE_BYTES ((size_t)4096)
/* Large enough that calls and jobs cost little beside hashing, which takes about 250 us. */
#define PIECE_BYTES ((size_t)512 << 10)
/* Enough for some to be worked on while others are filled. */
#define PIECES     4
#define RING_BYTES (PIECES * PIECE_BYTES)

/* What is done with each piece. */
enum { STORE, DIGEST, TASKS };

struct task {
    struct job job;
    struct intake *intake;
    uint64_t done; /* number of finished pieces */
    uint64_t due;  /* what done will be after the current job; equal to done if there is none */
};

struct intake {
    struct deadline part; /* first, for casts: when to store a piece that is not full */
    struct intake_set *set;
    struct request *request;
    uint64_t left; /* bytes of the body still to be read; INTAKE_CHUNKED */
    uint8_t *ring; /* PIECES places, or only as many as a shorter body fills */
    size_t ring_bytes;
    size_t place_bytes; /* for a piece */
    struct piece {
        uint8_t *bytes; /* in the ring; the first piece begins a little behind its place */
        size_t length;
        uint64_t offset;
    } pieces[PIECES];
    uint64_t filled; /* number of full pieces */
    struct task tasks[TASKS];
    bool filling; /* the next piece is begun */
    bool watched;
    bool is_short; /* one piece, which one job stores and digests */
    bool broken;   /* the client is gone or took too long, or the body is malformed */
};

struct intake_set {
    struct mailbox *mailbox;
    struct intake_events events;
    size_t ring_bytes; /* of all intakes */
    struct deadlines parts;
    int epoll;
};

static inline struct connection *connection_of(const struct intake *intake)
{
    return intake->request->connection;
}

static inline struct chunks *chunks_of(const struct intake *intake)
{
    return &request_state(intake->request)->chunks;
}

static inline bool is_chunked(const struct intake *intake)
{
    return intake->left == INTAKE_CHUNKED;
}

static inline bool is_malformed(const struct intake *intake)
{
    return is_chunked(intake) && chunks_of(intake)->why != NULL;
}

/* The number of pieces that both tasks have finished. */
static inline uint64_t finished(const struct intake *intake)
{
    const uint64_t stored = intake->tasks[STORE].done;
    const uint64_t digested = intake->tasks[DIGEST].done;

    return stored < digested ? stored : digested;
}

/* Whether the whole body has been read. */
static inline bool is_over(const struct intake *intake)
{
    return is_chunked(intake) ? chunks_of(intake)->state == CHUNKS_OVER : intake->left == 0;
}

static inline bool can_read(const struct intake *intake)
{
    return !is_over(intake) && !intake->broken && intake->filled - finished(intake) < PIECES;
}

static inline bool keeps_parts(const struct intake *intake)
{
    return request_state_const(intake->request)->operation->keeps_parts;
}

static inline size_t least(uint64_t one, size_t other)
{
    return one < other ? (size_t)one : other;
}

/* The piece that is being filled is given to the tasks as it is. */
void intake_close_piece(struct intake *intake);

/* Nothing more is read. */
void intake_break_off(struct intake *intake);

/* Reads what has come, at most one piece. Breaks off at the end of the stream. */
void intake_receive(struct intake *intake);

#endif
