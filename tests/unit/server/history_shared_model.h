/* A small model of a history in a bucket that several servers change: its state, and each operation
 * as a list of steps, in the order that store/versions/history_place.h demands. */
#ifndef HISTORY_SHARED_MODEL_H
#define HISTORY_SHARED_MODEL_H

#include "tests.h"

#include <stdint.h>
#include <string.h>

#define ACTORS    4
#define LOG_MAX   8
#define STEPS_MAX 20
#define ENDED     (STEPS_MAX - 1)
#define LOOKS     3

/* The repository has one file, and a content is a number. It is also the identity of the commit. */
enum { NOTHING, A, B, C, CONTENTS };
enum { ABSENT, YOUNG, OLD };
enum wrong { RIGHT, LOST_FOR_READER, NOT_ONE_ENTRY };

struct entry {
    uint8_t commit;
    uint8_t by; /* actor, or ACTORS: found in the folder */
};

struct actor {
    uint8_t at;      /* step */
    uint8_t version; /* of the log, when it was read */
    uint8_t saw;     /* ABSENT, YOUNG or OLD */
    uint8_t holds;   /* bits of contents that it relies on until its change is recorded */
    uint8_t named;   /* bits; of a collector, as the next */
    uint8_t old;     /* objects that were old when it began, and have not been made again */
    uint8_t content; /* that a reader looks for, or a collector looks at */
    uint8_t count;   /* looks of a reader, or entries of a writer */
    uint8_t is_dead;
};

/* Bytes only, so that equal states have equal bytes. */
struct state {
    uint8_t folder;
    uint8_t objects[CONTENTS];
    uint8_t removals;                /* bits of contents: requests on their way */
    uint8_t unanswered;              /* those of them whose answers got lost */
    uint8_t object_claims[CONTENTS]; /* actor + 1 */
    uint8_t stays; /* bits of contents whose claim is never released, and expires */
    uint8_t entries;
    struct entry log[LOG_MAX]; /* the oldest first */
    uint8_t version;           /* of the log: how often it was written */
    uint8_t repo_claim;        /* actor + 1 */
    uint8_t collectors_claim;
    uint8_t late;         /* actor + 1: it was killed while its entry was on its way */
    uint8_t late_version; /* that the entry expects */
    uint8_t late_commit;
    struct actor actors[ACTORS];
    uint8_t kills;
    uint8_t wrong;
};

struct turn {
    struct state *state;
    const struct world *world;
    struct actor *actor;
    uint8_t number;
    const struct plan *plan;
};

struct step {
    const char *name;
    bool (*take)(const struct turn *turn); /* returns false if the actor has to wait */
};

struct program {
    const char *name;
    const struct step *steps[STEPS_MAX];
};

struct world {
    uint8_t folder; /* at the beginning, when nothing is recorded */
    uint8_t objects[CONTENTS];
    uint8_t commits_kept;
    struct plan {
        const struct program *program;
        uint8_t content; /* that it uploads */
        bool is_to_branch;
    } plans[ACTORS];
};

static uint8_t bit_of(uint8_t content)
{
    return content == NOTHING ? 0 : (uint8_t)(1U << content);
}

static uint8_t named_in(const struct state *state)
{
    uint8_t named = 0;

    for (unsigned i = 0; i < state->entries; i++)
        named |= bit_of(state->log[i].commit);
    return named;
}

static bool is_head(const struct state *state, uint8_t commit)
{
    return state->entries > 0 && state->log[state->entries - 1].commit == commit;
}

/* Writes the log, with the entries beyond the limit left out. */
static void append(struct state *state, const struct world *world, uint8_t commit, uint8_t by)
{
    assert_true(state->entries < LOG_MAX);
    state->log[state->entries++] = (struct entry){commit, by};
    state->version++;
    while (state->entries > world->commits_kept) {
        memmove(state->log, state->log + 1, sizeof(state->log) - sizeof(state->log[0]));
        state->log[--state->entries] = (struct entry){0, 0};
    }
}

/* --- steps --- */

#define STEP(id, text)                               \
    static bool take_##id(const struct turn *turn);  \
    static const struct step id = {text, take_##id}; \
    static bool take_##id(const struct turn *turn)

static bool claim(uint8_t *holder, const struct turn *turn)
{
    if (*holder != 0)
        return false;
    *holder = (uint8_t)(turn->number + 1);
    return true;
}

static void release(uint8_t *holder, const struct turn *turn)
{
    if (*holder == turn->number + 1)
        *holder = 0;
}

/* Continues with another step of the same program. Returns true. */
static bool go_to(const struct turn *turn, const struct step *step)
{
    const struct program *program = turn->world->plans[turn->number].program;

    for (uint8_t i = 0; program->steps[i] != NULL; i++)
        if (program->steps[i] == step)
            turn->actor->at = i;
    return true;
}

STEP(claim_repo, "claims the repository")
{
    return claim(&turn->state->repo_claim, turn);
}

/* Returns the content that a change keeps: of the file that it replaces, or of the upload to a
 * branch, which the folder never has. */
static uint8_t kept_by(const struct turn *turn)
{
    return turn->plan->is_to_branch ? turn->plan->content : turn->state->folder;
}

STEP(read_log, "reads the log")
{
    turn->actor->version = turn->state->version;
    return true;
}

/* Returns false if another server has written the log since it was read. */
static bool record(const struct turn *turn, uint8_t commit, uint8_t by)
{
    struct state *state = turn->state;

    if (turn->actor->version != state->version)
        return false;
    if (is_head(state, commit))
        return true;
    append(state, turn->world, commit, by);
    turn->actor->version = state->version;
    turn->actor->count += by == turn->number;
    return true;
}

STEP(record_found, "records what it found")
{
    return record(turn, turn->state->folder, ACTORS) || go_to(turn, &read_log);
}

STEP(read_again, "reads the log again")
{
    turn->actor->version = turn->state->version;
    return true;
}

STEP(record_change, "records")
{
    const uint8_t commit = turn->plan->is_to_branch ? turn->plan->content : turn->state->folder;

    return record(turn, commit, turn->number) || go_to(turn, &read_again);
}

STEP(publish, "publishes")
{
    if (!turn->plan->is_to_branch)
        turn->state->folder = turn->plan->content;
    return go_to(turn, &record_change);
}

static bool make_young(const struct turn *turn)
{
    for (unsigned i = 0; i < ACTORS; i++)
        turn->state->actors[i].old &= (uint8_t)~bit_of(kept_by(turn));
    if (kept_by(turn) != NOTHING)
        turn->state->objects[kept_by(turn)] = YOUNG;
    turn->actor->holds |= bit_of(kept_by(turn));
    return true;
}

STEP(look_at_object, "looks at the object")
{
    const uint8_t kept = kept_by(turn);

    if (kept != NOTHING && turn->state->objects[kept] != YOUNG)
        return true;
    turn->actor->holds |= bit_of(kept);
    return go_to(turn, &publish);
}

STEP(claim_object, "claims the object")
{
    return claim(&turn->state->object_claims[kept_by(turn)], turn);
}

STEP(copy, "makes the object")
{
    return make_young(turn);
}

STEP(release_object, "releases the object")
{
    release(&turn->state->object_claims[kept_by(turn)], turn);
    return true;
}

STEP(release_repo, "releases the repository")
{
    release(&turn->state->repo_claim, turn);
    turn->actor->holds = 0;
    return true;
}

STEP(acknowledge, "acknowledges")
{
    if (turn->actor->count != 1)
        turn->state->wrong = NOT_ONE_ENTRY;
    return true;
}

static const struct program put = {
    "put",
    {&claim_repo, &read_log, &record_found, &look_at_object, &claim_object, &copy, &release_object,
     &publish, &read_again, &record_change, &release_repo, &acknowledge},
};

STEP(claim_collecting, "claims the collectors' claim")
{
    return claim(&turn->state->collectors_claim, turn);
}

STEP(release_collecting, "releases the collectors' claim")
{
    release(&turn->state->collectors_claim, turn);
    return true;
}

STEP(read_names, "reads which files are named")
{
    turn->actor->named = named_in(turn->state);
    turn->actor->content = A;
    for (uint8_t i = A; i < CONTENTS; i++)
        if (turn->state->objects[i] == OLD)
            turn->actor->old |= bit_of(i);
    return true;
}

static bool has_next(const struct turn *turn)
{
    return ++turn->actor->content < CONTENTS;
}

STEP(claim_listed, "claims an object, or goes on to the next")
{
    uint8_t *const claims = turn->state->object_claims;

    while (turn->actor->content < CONTENTS && !claim(&claims[turn->actor->content], turn))
        turn->actor->content++;
    return turn->actor->content < CONTENTS || go_to(turn, &release_collecting);
}

STEP(look_for_old, "looks whether the object was old when it began")
{
    const uint8_t content = turn->actor->content;

    turn->actor->saw = turn->actor->old & bit_of(content) ? turn->state->objects[content] : ABSENT;
    return true;
}

STEP(send_removal, "sends its removal")
{
    const uint8_t content = turn->actor->content;

    if (turn->actor->saw == OLD && (turn->actor->named & bit_of(content)) == 0)
        turn->state->removals |= bit_of(content);
    return true;
}

static bool is_pending(const struct turn *turn)
{
    return turn->state->removals & bit_of(turn->actor->content);
}

STEP(await_removal, "waits for the answer")
{
    return !is_pending(turn) || (turn->state->unanswered & bit_of(turn->actor->content));
}

STEP(release_listed, "releases the object if there was an answer")
{
    if (is_pending(turn))
        turn->state->stays |= bit_of(turn->actor->content);
    else
        release(&turn->state->object_claims[turn->actor->content], turn);
    return has_next(turn) ? go_to(turn, &claim_listed) : true;
}

static const struct program collect = {
    "collect",
    {&claim_collecting, &read_names, &claim_listed, &look_for_old, &send_removal, &await_removal,
     &release_listed, &release_collecting},
};

STEP(resolve_oldest, "resolves the oldest commit")
{
    turn->actor->content = turn->state->entries > 0 ? turn->state->log[0].commit : NOTHING;
    if (turn->actor->content == NOTHING)
        turn->actor->at = ENDED;
    return true;
}

STEP(look_in_objects, "looks among the kept files")
{
    if (turn->state->objects[turn->actor->content] != ABSENT)
        turn->actor->at = ENDED;
    return true;
}

STEP(look_in_folder, "looks in the folder")
{
    if (turn->state->folder == turn->actor->content)
        turn->actor->at = ENDED;
    else if (++turn->actor->count < LOOKS)
        return go_to(turn, &look_in_objects);
    return true;
}

STEP(give_up, "gives up")
{
    if (named_in(turn->state) & bit_of(turn->actor->content))
        turn->state->wrong = LOST_FOR_READER;
    return true;
}

static const struct program read_oldest = {
    "read", {&resolve_oldest, &look_in_objects, &look_in_folder, &give_up}};

#endif
