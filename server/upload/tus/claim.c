/* Claims are numbered, so that a request that has lost its claim cannot end the next one by
 * mistake. */
#include "upload/tus/claim.h"

#include <assert.h>

#include "base/clock.h"

/* Shorter pauses are common on slow connections. */
#define SILENT_MS 5000

void claim_init(struct claim *claim)
{
    *claim = (struct claim){.holder = 0};
    pthread_mutex_init(&claim->lock, NULL);
}

void claim_free(struct claim *claim)
{
    assert(claim->holder <= claim->last);
    pthread_mutex_destroy(&claim->lock);
}

/* The lock must be held. */
static uint64_t give_out(struct claim *claim, bool gives_way)
{
    assert(claim->holder == 0 || claim->gives_way);
    claim->holder = ++claim->last;
    claim->gives_way = gives_way;
    claim->is_storing = false;
    claim->last_progress_ms = clock_ms();
    return claim->holder;
}

static uint64_t take(struct claim *claim, bool gives_way)
{
    uint64_t number;

    pthread_mutex_lock(&claim->lock);
    number = claim->holder == 0 ? give_out(claim, gives_way) : 0;
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
    number = claim->holder == 0 || claim->gives_way ? give_out(claim, false) : 0;
    pthread_mutex_unlock(&claim->lock);
    return number;
}

void claim_end_silent(struct claim *claim)
{
    pthread_mutex_lock(&claim->lock);
    assert(claim->holder <= claim->last);
    if (claim->holder != 0 && claim->gives_way && !claim->is_storing &&
        clock_ms() - claim->last_progress_ms >= SILENT_MS)
        claim->holder = 0;
    pthread_mutex_unlock(&claim->lock);
}

/* The lock must be held. */
static bool holds(const struct claim *claim, uint64_t number)
{
    assert(number > 0 && number <= claim->last);
    assert(claim->holder <= claim->last);
    return claim->holder == number;
}

bool claim_begin_store(struct claim *claim, uint64_t number)
{
    bool held;

    pthread_mutex_lock(&claim->lock);
    held = holds(claim, number);
    if (held) {
        assert(claim->gives_way && !claim->is_storing);
        claim->is_storing = true;
    }
    pthread_mutex_unlock(&claim->lock);
    return held;
}

void claim_end_store(struct claim *claim, uint64_t number)
{
    pthread_mutex_lock(&claim->lock);
    if (holds(claim, number)) {
        assert(claim->is_storing);
        claim->is_storing = false;
        claim->last_progress_ms = clock_ms();
    }
    pthread_mutex_unlock(&claim->lock);
}

bool claim_confirm(struct claim *claim, uint64_t number)
{
    bool held;

    pthread_mutex_lock(&claim->lock);
    held = holds(claim, number);
    if (held) {
        assert(!claim->is_storing);
        claim->gives_way = false;
    }
    pthread_mutex_unlock(&claim->lock);
    return held;
}

void claim_end(struct claim *claim, uint64_t number)
{
    pthread_mutex_lock(&claim->lock);
    if (holds(claim, number))
        claim->holder = 0;
    pthread_mutex_unlock(&claim->lock);
}
