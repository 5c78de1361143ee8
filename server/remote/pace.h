/* How many requests may be on their way: half as many after an answer that says "too many", one
 * more after 16 that say nothing of the kind. On one thread. */
#ifndef REMOTE_PACE_H
#define REMOTE_PACE_H

#include <stdbool.h>

struct pace {
    unsigned most;
    unsigned allowed;
    unsigned successes; /* since allowed changed */
    unsigned round;     /* counts halvings */
};

static inline void pace_init(struct pace *pace, unsigned most)
{
    *pace = (struct pace){.most = most, .allowed = most};
}

/* The service is overloaded, says the answer to a request that was sent in a round. Of the many
 * that were on their way together only the first counts. */
static inline void pace_halve(struct pace *pace, unsigned round)
{
    if (round != pace->round)
        return;
    pace->allowed = pace->allowed > 1 ? pace->allowed / 2 : 1;
    pace->successes = 0;
    pace->round++;
}

static inline void pace_succeed(struct pace *pace)
{
    if (pace->allowed == pace->most || ++pace->successes < 16)
        return;
    pace->allowed++;
    pace->successes = 0;
}

#endif
