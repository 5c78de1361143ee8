/* All interleavings of servers over one bucket: writers, a reader and collectors, one of which is
 * killed after any step, while removals arrive late and answers get lost. Then a step is left out,
 * and the explorer must find what breaks. */
#include "history_shared_model.h"
#include "tests.h"

#include "explore.h"

#include <stdio.h>
#include <stdlib.h>

/* --- exploring --- */

enum {
    KILLS = ACTORS,
    ARRIVES = KILLS + ACTORS,
    LOSES = ARRIVES + CONTENTS,
    AGES = LOSES + CONTENTS,
    OBJECT_EXPIRES = AGES + CONTENTS,
    REPO_EXPIRES = OBJECT_EXPIRES + CONTENTS,
    COLLECTING_EXPIRES,
    ENTRY_ARRIVES,
    CHOICES
};

static bool is_over(const struct state *state, const struct world *world, unsigned number)
{
    const struct program *program = world->plans[number].program;
    const struct actor *actor = &state->actors[number];

    return program == NULL || actor->is_dead != 0 || program->steps[actor->at] == NULL;
}

static void begin(void *memory, const void *context)
{
    struct state *state = memory;
    const struct world *world = context;

    state->folder = world->folder;
    memcpy(state->objects, world->objects, sizeof(state->objects));
}

static bool take_step(struct state *state, const struct world *world, unsigned number)
{
    struct actor *actor = &state->actors[number];
    const struct turn turn = {state, world, actor, (uint8_t)number, &world->plans[number]};
    const struct program *program = world->plans[number].program;
    const uint8_t at = actor->at;

    if (is_over(state, world, number) || !program->steps[at]->take(&turn))
        return false;
    if (actor->at == at)
        actor->at++;
    if (is_over(state, world, number))
        *actor = (struct actor){.at = ENDED};
    return true;
}

/* Its claims stay until they expire, and an entry that is on its way may arrive. */
static bool kill(struct state *state, const struct world *world, unsigned number)
{
    struct actor *actor = &state->actors[number];

    if (state->kills > 0 || is_over(state, world, number) || actor->at == 0)
        return false;
    if (world->plans[number].program->steps[actor->at] == &record_change) {
        state->late = (uint8_t)(number + 1);
        state->late_version = actor->version;
        state->late_commit =
            world->plans[number].is_to_branch ? world->plans[number].content : state->folder;
    }
    *actor = (struct actor){.at = ENDED, .is_dead = 1};
    state->kills = 1;
    return true;
}

static bool arrive(struct state *state, uint8_t content)
{
    if ((state->removals & bit_of(content)) == 0)
        return false;
    state->removals &= (uint8_t)~bit_of(content);
    state->unanswered &= (uint8_t)~bit_of(content);
    state->objects[content] = ABSENT;
    return true;
}

static bool lose(struct state *state, uint8_t content)
{
    if ((state->removals & bit_of(content)) == 0 || (state->unanswered & bit_of(content)))
        return false;
    state->unanswered |= bit_of(content);
    return true;
}

/* Changes end, and their requests arrive, before the objects that they rely on are old. */
static bool age(struct state *state, uint8_t content)
{
    if (state->objects[content] != YOUNG || state->late_commit == content)
        return false;
    for (unsigned i = 0; i < ACTORS; i++)
        if (state->actors[i].holds & bit_of(content))
            return false;
    state->objects[content] = OLD;
    return true;
}

static bool is_dead(const struct state *state, uint8_t holder)
{
    return holder > 0 && state->actors[holder - 1].is_dead != 0;
}

static bool expire(struct state *state, uint8_t *holder)
{
    if (!is_dead(state, *holder))
        return false;
    *holder = 0;
    return true;
}

/* A claim outlives the requests that were made under it. */
static bool expire_object(struct state *state, uint8_t content)
{
    uint8_t *holder = &state->object_claims[content];

    if (*holder == 0 || (state->removals & bit_of(content)) ||
        ((state->stays & bit_of(content)) == 0 && !is_dead(state, *holder)))
        return false;
    *holder = 0;
    state->stays &= (uint8_t)~bit_of(content);
    return true;
}

static bool arrive_late(struct state *state, const struct world *world)
{
    if (state->late == 0)
        return false;
    if (state->late_version == state->version && !is_head(state, state->late_commit))
        append(state, world, state->late_commit, (uint8_t)(state->late - 1));
    state->late = state->late_version = state->late_commit = 0;
    return true;
}

static bool choose_next(void *memory, unsigned choice, const void *context)
{
    struct state *state = memory;
    const struct world *world = context;

    if (choice < KILLS)
        return take_step(state, world, choice);
    if (choice < ARRIVES)
        return kill(state, world, choice - KILLS);
    if (choice < LOSES)
        return arrive(state, (uint8_t)(choice - ARRIVES));
    if (choice < AGES)
        return lose(state, (uint8_t)(choice - LOSES));
    if (choice < OBJECT_EXPIRES)
        return age(state, (uint8_t)(choice - AGES));
    if (choice < REPO_EXPIRES)
        return expire_object(state, (uint8_t)(choice - OBJECT_EXPIRES));
    if (choice == REPO_EXPIRES)
        return expire(state, &state->repo_claim);
    if (choice == COLLECTING_EXPIRES)
        return expire(state, &state->collectors_claim);
    return arrive_late(state, world);
}

static void name_choice(const void *memory, unsigned choice, char *out, size_t size,
                        const void *context)
{
    const struct state *state = memory;
    const struct world *world = context;

    if (choice < KILLS)
        snprintf(out, size, "%s %u %s", world->plans[choice].program->name, choice,
                 world->plans[choice].program->steps[state->actors[choice].at]->name);
    else if (choice < ARRIVES)
        snprintf(out, size, "server %u is killed", choice - KILLS);
    else if (choice < LOSES)
        snprintf(out, size, "a removal of %u arrives", choice - ARRIVES);
    else if (choice < AGES)
        snprintf(out, size, "the answer to a removal of %u gets lost", choice - LOSES);
    else if (choice < OBJECT_EXPIRES)
        snprintf(out, size, "%u becomes old", choice - AGES);
    else
        snprintf(out, size, "%s",
                 choice == ENTRY_ARRIVES ? "a late entry arrives" : "a claim expires");
}

static bool has_all_files(const struct state *state)
{
    const uint8_t named = named_in(state);

    for (uint8_t i = A; i < CONTENTS; i++)
        if ((named & bit_of(i)) && state->objects[i] == ABSENT && state->folder != i)
            return false;
    return true;
}

static bool can_go_on(const struct state *state, const struct world *world)
{
    for (unsigned i = 0; i < CHOICES; i++) {
        struct state next = *state;

        if ((i < KILLS || i >= ARRIVES) && choose_next(&next, i, world))
            return true;
    }
    return false;
}

static bool are_all_over(const struct state *state, const struct world *world)
{
    for (unsigned i = 0; i < ACTORS; i++)
        if (!is_over(state, world, i))
            return false;
    return true;
}

static const char *find_wrong(const void *memory, const void *context)
{
    static const char *const reasons[] = {
        [LOST_FOR_READER] = "a reader does not find a file of a commit that is kept",
        [NOT_ONE_ENTRY] = "an acknowledged change does not have one entry",
    };
    const struct state *state = memory;

    if (state->wrong != RIGHT)
        return reasons[state->wrong];
    if (!has_all_files(state))
        return "a file of a commit that is kept is gone";
    if (are_all_over(state, context) || can_go_on(state, context))
        return NULL;
    return "servers wait for each other";
}

static struct explored explored_world(const struct world *world)
{
    const struct explore_model model = {sizeof(struct state), CHOICES,     begin, choose_next,
                                        find_wrong,           name_choice, world};
    struct explored explored;

    explore(&model, &explored);
    return explored;
}

static void assert_right(const struct world *world)
{
    struct explored explored = explored_world(world);

    if (explored.wrong != NULL)
        fail_msg("%s:\n%s", explored.wrong, explored.trace);
    print_message("%zu states\n", explored.states);
}

/* --- the steps as they are --- */

/* A file comes back whose object no commit names any more. */
static const struct world come_back = {
    .folder = A,
    .objects = {[A] = OLD, [B] = OLD},
    .commits_kept = 2,
    .plans = {{&put, B, false},
              {&collect, 0, false},
              {&collect, 0, false},
              {&read_oldest, 0, false}},
};

/* Two servers replace the file, and commits are forgotten. */
static const struct world replaced = {
    .folder = A,
    .objects = {[A] = OLD},
    .commits_kept = 2,
    .plans = {{&put, B, false}, {&put, C, false}, {&collect, 0, false}, {&read_oldest, 0, false}},
};

/* Three replace it. */
static const struct world taking_turns = {
    .folder = A,
    .objects = {[B] = OLD, [C] = OLD},
    .commits_kept = 4,
    .plans = {{&put, B, false}, {&put, C, false}, {&put, NOTHING, false}, {&collect, 0, false}},
};

/* A branch gets a file that no commit names any more, and the folder another one. */
static const struct world branched = {
    .folder = A,
    .objects = {[C] = OLD},
    .commits_kept = 3,
    .plans = {{&put, C, true}, {&put, B, false}, {&collect, 0, false}, {&collect, 0, false}},
};

TEST(a_file_that_comes_back_is_kept)
{
    assert_right(&come_back);
}

TEST(files_that_two_servers_replace_are_kept)
{
    assert_right(&replaced);
}

TEST(a_file_of_a_branch_is_kept)
{
    assert_right(&branched);
}

TEST(three_servers_take_turns)
{
    assert_right(&taking_turns);
}

/* --- with a mistake --- */

static struct program without(const struct program *program, const struct step *step)
{
    struct program made = {.name = program->name};
    unsigned count = 0;

    for (unsigned i = 0; program->steps[i] != NULL; i++)
        if (program->steps[i] != step)
            made.steps[count++] = program->steps[i];
    return made;
}

static const char gone[] = "a file of a commit that is kept is gone";

/* ZT_TRACES prints what the servers do. */
static void assert_found(const struct world *world, const struct program *right,
                         struct program wrong, const char *reason)
{
    struct world mistaken = *world;
    struct explored explored;

    for (unsigned i = 0; i < ACTORS; i++)
        if (mistaken.plans[i].program == right)
            mistaken.plans[i].program = &wrong;
    explored = explored_world(&mistaken);
    assert_non_null(explored.wrong);
    assert_string_equal(explored.wrong, reason);
    if (getenv("ZT_TRACES") != NULL)
        print_message("%s", explored.trace);
}

TEST(finds_a_publication_without_a_copy)
{
    const struct program wrong = {
        "put",
        {&claim_repo, &read_log, &record_found, &publish, &read_again, &record_change,
         &release_repo, &acknowledge},
    };

    assert_found(&replaced, &put, wrong, gone);
}

TEST(finds_a_copy_without_a_claim_of_the_object)
{
    assert_found(&come_back, &put, without(&put, &claim_object), gone);
}

STEP(trust_any_object, "looks whether there is an object")
{
    const uint8_t kept = kept_by(turn);

    if (kept != NOTHING && turn->state->objects[kept] == ABSENT)
        return true;
    turn->actor->holds |= bit_of(kept);
    return go_to(turn, &publish);
}

TEST(finds_an_old_object_that_is_not_made_again)
{
    const struct program wrong = {
        "put",
        {&claim_repo, &read_log, &record_found, &trust_any_object, &claim_object, &copy,
         &release_object, &publish, &read_again, &record_change, &release_repo, &acknowledge},
    };

    assert_found(&branched, &put, wrong, gone);
}

TEST(finds_a_removal_without_a_claim_of_the_object)
{
    assert_found(&come_back, &collect, without(&collect, &claim_listed), gone);
}

STEP(release_in_any_case, "releases the object")
{
    release(&turn->state->object_claims[turn->actor->content], turn);
    return has_next(turn) ? go_to(turn, &claim_listed) : true;
}

TEST(finds_a_claim_that_is_released_without_an_answer)
{
    const struct program wrong = {
        "collect",
        {&claim_collecting, &read_names, &claim_listed, &look_for_old, &send_removal,
         &await_removal, &release_in_any_case, &release_collecting},
    };

    assert_found(&come_back, &collect, wrong, gone);
}

static bool look(const struct turn *turn, uint8_t least)
{
    const uint8_t object = turn->state->objects[turn->actor->content];

    turn->actor->saw = object >= least ? OLD : ABSENT;
    return true;
}

STEP(look_at_all, "looks whether there is an object")
{
    return look(turn, YOUNG);
}

STEP(look_for_old_now, "looks whether an object is old now")
{
    return look(turn, OLD);
}

TEST(finds_a_collector_that_does_not_look_at_the_age)
{
    const struct program wrong = {
        "collect",
        {&claim_collecting, &read_names, &claim_listed, &look_at_all, &send_removal, &await_removal,
         &release_listed, &release_collecting},
    };

    assert_found(&branched, &collect, wrong, gone);
}

TEST(finds_a_collector_that_takes_its_time)
{
    const struct program wrong = {
        "collect",
        {&claim_collecting, &read_names, &claim_listed, &look_for_old_now, &send_removal,
         &await_removal, &release_listed, &release_collecting},
    };

    assert_found(&branched, &collect, wrong, gone);
}

TEST(finds_writers_without_a_claim_of_the_repository)
{
    assert_found(&replaced, &put, without(&put, &claim_repo), gone);
}
