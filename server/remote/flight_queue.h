/* Exchanges that wait: for their turn, in the order in which they came and the urgent ones first,
 * or for the end of a pause. On one thread. */
#ifndef REMOTE_FLIGHT_QUEUE_H
#define REMOTE_FLIGHT_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "remote/remote.h"
#include "remote/sign.h"

/* What the thread keeps of an exchange from its beginning to its end. */
struct remote_flight {
    struct remote_exchange *exchange;
    struct remote_flight *next;
    int64_t deadline_ms;
    int64_t due_ms; /* the end of its pause */
    unsigned extra; /* tries that do not count, after a renewal */
    unsigned round; /* of the pace, when it was sent */
    char signed_date[SIGN_DATE_SIZE];
    uint64_t signed_with;    /* signed_fields.credential */
    int64_t renewed_by_ms;   /* when others than those should be there */
    bool has_adjusted_clock; /* signed again by the service's clock */
    bool is_second_attempt;  /* with other credentials */
};

struct flight_list {
    struct remote_flight *first;
    struct remote_flight *last;
};

struct flight_queue {
    struct flight_list urgent;
    struct flight_list ordinary;
    struct flight_list paused; /* by due_ms */
};

/* Behind those that wait already. */
void flight_queue_add(struct flight_queue *queue, struct remote_flight *flight);

/* Until due_ms, then before the others of its kind. */
void flight_queue_pause(struct flight_queue *queue, struct remote_flight *flight);

/* Ends the pauses that are over. */
void flight_queue_wake(struct flight_queue *queue, int64_t now_ms);

/* The next whose turn it is, or NULL. */
struct remote_flight *flight_queue_take(struct flight_queue *queue);
/* The same among those that fit. */
struct remote_flight *flight_queue_take_if(struct flight_queue *queue,
                                           bool (*fits)(const void *context,
                                                        const struct remote_flight *flight),
                                           const void *context);

/* One whose deadline has passed, or with INT64_MAX any, also of those that pause; or NULL. */
struct remote_flight *flight_queue_expire(struct flight_queue *queue, int64_t now_ms);

/* When the first pause ends; INT64_MAX: none. */
int64_t flight_queue_due_ms(const struct flight_queue *queue);
bool flight_queue_is_waiting(const struct flight_queue *queue);

#endif
