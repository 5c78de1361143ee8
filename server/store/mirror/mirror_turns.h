/* Questions to upstreams: one for each name, however many threads ask it, and few at once. */
#ifndef STORE_MIRROR_MIRROR_TURNS_H
#define STORE_MIRROR_MIRROR_TURNS_H

#include <pthread.h>
#include <stdbool.h>

#include "zt/status.h"

struct mirror_version;

/* Questions that are asked at once, and the threads that may wait for others' questions as long
 * as these take. Any other thread waits only for a question that is younger than
 * MIRROR_YOUNG_MS. So an upstream that hangs leaves threads (WAITERS in serve/instance.c) to
 * everything that is here. */
#define MIRROR_ASKING_MAX  24u
#define MIRROR_WAITING_MAX 24u
#define MIRROR_YOUNG_MS    1000

struct mirror_answer {
    enum zt_status status;
    struct zt_error error;          /* if it failed */
    struct mirror_version *version; /* a reference, if it did not */
};

struct mirror_turn;

/* All zero, except for the lock and the condition. */
struct mirror_turns {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* monotonic */
    struct mirror_turn *first;
    unsigned asking;
    unsigned waiting;
    bool is_interrupted;
};

void mirror_turns_init(struct mirror_turns *turns);
/* When no thread is inside. */
void mirror_turns_end(struct mirror_turns *turns);
/* All threads that wait here fail now, and later ones at once. */
void mirror_turns_interrupt(struct mirror_turns *turns);

/* Calls ask, or waits for the same answer if another thread is asking about the same name. Returns
 * ZT_UNAVAILABLE if too many threads wait. *out_answer has its own reference. */
void mirror_turns_ask(struct mirror_turns *turns, const char *name,
                      void (*ask)(void *context, struct mirror_answer *out_answer), void *context,
                      struct mirror_answer *out_answer);

#endif
