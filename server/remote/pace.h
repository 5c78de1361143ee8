/* How many requests may be on their way: half as many after an answer that says "too many", but not
 * fewer than four; one more after 16 that do not. On one thread. */
#ifndef REMOTE_PACE_H
#define REMOTE_PACE_H

#include <stdbool.h>

/* So few overload no service, and of fewer a single slow one would hold up too many others. */
#define PACE_LEAST 4

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

/* The service is overloaded, says the answer to a request that was sent in a round. Only the first
 * of the requests that were in progress together counts. */
static inline void pace_halve(struct pace *pace, unsigned round)
{
    if (round != pace->round)
        return;
    if (pace->allowed > PACE_LEAST)
        pace->allowed = pace->allowed / 2 > PACE_LEAST ? pace->allowed / 2 : PACE_LEAST;
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
