/* Claims are numbered: who lost one cannot end, by mistake, that of the next. */
#include "upload/shared/claim.h"

/* Shorter pauses are common on a slow line. */
#define SILENT_S 5

static time_t now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

void claim_init(struct claim *claim)
{
    *claim = (struct claim){.holder = 0};
    pthread_mutex_init(&claim->lock, NULL);
}

void claim_free(struct claim *claim)
{
    pthread_mutex_destroy(&claim->lock);
}

/* With the lock held. */
static uint64_t hand_out(struct claim *claim, bool yields)
{
    claim->holder = ++claim->last;
    claim->yields = yields;
    claim->is_storing = false;
    claim->heard = now_s();
    return claim->holder;
}

static uint64_t take(struct claim *claim, bool yields)
{
    uint64_t number;

    pthread_mutex_lock(&claim->lock);
    number = claim->holder == 0 ? hand_out(claim, yields) : 0;
    pthread_mutex_unlock(&claim->lock);
    return number;
}

uint64_t claim_take(struct claim *claim)
{
    return take(claim, false);
}

uint64_t claim_take_for_body(struct claim *claim)
{
    return take(claim, true);
}

uint64_t claim_seize(struct claim *claim)
{
    uint64_t number;

    pthread_mutex_lock(&claim->lock);
    number = claim->holder == 0 || claim->yields ? hand_out(claim, false) : 0;
    pthread_mutex_unlock(&claim->lock);
    return number;
}

void claim_end_silent(struct claim *claim)
{
    pthread_mutex_lock(&claim->lock);
    if (claim->holder != 0 && claim->yields && !claim->is_storing &&
        now_s() - claim->heard >= SILENT_S)
        claim->holder = 0;
    pthread_mutex_unlock(&claim->lock);
}

bool claim_begin_store(struct claim *claim, uint64_t number)
{
    bool held;

    pthread_mutex_lock(&claim->lock);
    held = claim->holder == number;
    if (held)
        claim->is_storing = true;
    pthread_mutex_unlock(&claim->lock);
    return held;
}

void claim_end_store(struct claim *claim, uint64_t number)
{
    pthread_mutex_lock(&claim->lock);
    if (claim->holder == number) {
        claim->is_storing = false;
        claim->heard = now_s();
    }
    pthread_mutex_unlock(&claim->lock);
}

bool claim_settle(struct claim *claim, uint64_t number)
{
    bool held;

    pthread_mutex_lock(&claim->lock);
    held = claim->holder == number;
    if (held)
        claim->yields = false;
    pthread_mutex_unlock(&claim->lock);
    return held;
}

void claim_end(struct claim *claim, uint64_t number)
{
    pthread_mutex_lock(&claim->lock);
    if (claim->holder == number)
        claim->holder = 0;
    pthread_mutex_unlock(&claim->lock);
}
