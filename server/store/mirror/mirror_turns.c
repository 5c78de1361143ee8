#include "store/mirror/mirror_turns.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "store/mirror/mirror_version.h"
#include "upstream/upstream.h"

struct mirror_turn {
    struct mirror_turn *next;
    int64_t begun_ms;
    unsigned users; /* the thread that asks, and those that wait for its answer */
    bool is_done;   /* then it is not in the list */
    struct mirror_answer answer;
    char name[];
};

void mirror_turns_init(struct mirror_turns *turns)
{
    pthread_condattr_t monotonic;

    memset(turns, 0, sizeof(*turns));
    pthread_mutex_init(&turns->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&turns->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

void mirror_turns_end(struct mirror_turns *turns)
{
    assert(turns->first == NULL && turns->asking == 0 && turns->waiting == 0);
    pthread_cond_destroy(&turns->changed);
    pthread_mutex_destroy(&turns->lock);
}

void mirror_turns_interrupt(struct mirror_turns *turns)
{
    pthread_mutex_lock(&turns->lock);
    turns->is_interrupted = true;
    pthread_cond_broadcast(&turns->changed);
    pthread_mutex_unlock(&turns->lock);
}

static void fail(struct mirror_answer *answer, const char *why)
{
    *answer = (struct mirror_answer){.version = NULL};
    answer->status =
        zt_fail(&answer->error, ZT_UNAVAILABLE, UPSTREAM_AWAY, ZT_NO_OFFSET, "%s", why);
}

/* --- with the lock --- */

static struct mirror_turn *find(const struct mirror_turns *turns, const char *name)
{
    struct mirror_turn *turn = turns->first;

    while (turn != NULL && strcmp(turn->name, name) != 0)
        turn = turn->next;
    return turn;
}

/* Until when a thread that came in excess may wait for this question or, if it is NULL, for the
 * oldest one to end. */
static int64_t patience_ms(const struct mirror_turns *turns, const struct mirror_turn *turn)
{
    int64_t begun_ms = turn != NULL ? turn->begun_ms : INT64_MAX;

    for (const struct mirror_turn *any = turns->first; turn == NULL && any != NULL; any = any->next)
        if (any->begun_ms < begun_ms)
            begun_ms = any->begun_ms;
    return begun_ms + MIRROR_YOUNG_MS;
}

/* Waits for a change. Returns false if the thread has to give up. */
static bool wait_for_change(struct mirror_turns *turns, const struct mirror_turn *turn)
{
    const bool is_patient = turn != NULL && turns->waiting < MIRROR_WAITING_MAX;
    const int64_t until_ms = patience_ms(turns, turn);
    const struct timespec until = {until_ms / 1000, until_ms % 1000 * CLOCK_NS_PER_MS};

    assert(lock_is_held(&turns->lock));
    if (turns->is_interrupted || (!is_patient && clock_ms() >= until_ms))
        return false;
    turns->waiting++;
    if (is_patient)
        pthread_cond_wait(&turns->changed, &turns->lock);
    else
        pthread_cond_timedwait(&turns->changed, &turns->lock, &until);
    turns->waiting--;
    return !turns->is_interrupted;
}

static struct mirror_turn *add(struct mirror_turns *turns, const char *name)
{
    struct mirror_turn *turn = calloc(1, sizeof(*turn) + strlen(name) + 1);

    if (turn == NULL)
        return NULL;
    strcpy(turn->name, name);
    turn->begun_ms = clock_ms();
    turn->next = turns->first;
    turns->first = turn;
    turns->asking++;
    return turn;
}

static void take_out(struct mirror_turns *turns, const struct mirror_turn *turn)
{
    struct mirror_turn **at = &turns->first;

    while (*at != turn)
        at = &(*at)->next;
    *at = turn->next;
    turns->asking--;
}

/* Hands over the answer, and ends the use of the turn. */
static void leave(struct mirror_turn *turn, struct mirror_answer *out_answer)
{
    assert(turn->is_done && turn->users > 0);
    *out_answer = turn->answer;
    turn->users--;
    if (turn->users == 0)
        free(turn);
    else if (out_answer->version != NULL)
        mirror_version_hold(out_answer->version);
}

/* Waits for the answer to another thread's question. Returns false if the thread has to give up. */
static bool follow(struct mirror_turns *turns, struct mirror_turn *turn,
                   struct mirror_answer *out_answer)
{
    bool goes_on = true;

    turn->users++;
    while (goes_on && !turn->is_done)
        goes_on = wait_for_change(turns, turn);
    if (turn->is_done) {
        leave(turn, out_answer);
        return true;
    }
    turn->users--;
    return false;
}

/* --- asking --- */

/* With the lock, which is released meanwhile. */
static void ask_now(struct mirror_turns *turns, struct mirror_turn *turn,
                    void (*ask)(void *context, struct mirror_answer *out_answer), void *context,
                    struct mirror_answer *out_answer)
{
    struct mirror_answer answer = {.version = NULL};

    turn->users++;
    pthread_mutex_unlock(&turns->lock);
    ask(context, &answer);
    pthread_mutex_lock(&turns->lock);
    assert((answer.status == ZT_OK) == (answer.version != NULL));
    turn->answer = answer;
    turn->is_done = true;
    take_out(turns, turn);
    pthread_cond_broadcast(&turns->changed);
    leave(turn, out_answer);
}

void mirror_turns_ask(struct mirror_turns *turns, const char *name,
                      void (*ask)(void *context, struct mirror_answer *out_answer), void *context,
                      struct mirror_answer *out_answer)
{
    struct mirror_turn *turn;
    bool goes_on = true;

    pthread_mutex_lock(&turns->lock);
    while (goes_on && find(turns, name) == NULL && turns->asking >= MIRROR_ASKING_MAX)
        goes_on = wait_for_change(turns, NULL);
    turn = find(turns, name);
    if (turns->is_interrupted)
        fail(out_answer, "the server is shutting down");
    else if (!goes_on || (turn != NULL && !follow(turns, turn, out_answer)))
        fail(out_answer, "too many clients wait for answers of the upstream");
    else if (turn == NULL && (turn = add(turns, name)) != NULL)
        ask_now(turns, turn, ask, context, out_answer);
    else if (turn == NULL)
        fail(out_answer, "there is no memory for a lookup");
    pthread_mutex_unlock(&turns->lock);
}
