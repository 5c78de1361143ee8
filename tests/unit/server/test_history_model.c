/* All interleavings of writers, a reader and a collector over a small model of the history
 * (history_model.h), and a kill after every step. Then a step is left out, or moved, and the
 * explorer must find what breaks. */
#include "history_model.h"
#include "tests.h"

#include "explore.h"

#include <stdio.h>
#include <stdlib.h>

/* --- exploring --- */

static bool is_over(const struct state *state, const struct world *world, unsigned actor)
{
    const struct program *program = world->plans[actor].program;

    return program == NULL || program->steps[state->actors[actor].at] == NULL;
}

static void begin(void *memory, const void *context)
{
    struct state *state = memory;
    const struct world *world = context;

    for (unsigned repo = 0; repo < REPOS; repo++) {
        state->folder[repo] = world->folder[repo];
        state->tags[repo] = NO_COMMIT;
        state->sides[repo] = NO_COMMIT;
    }
    for (unsigned i = 0; i < ACTORS; i++)
        if (world->plans[i].is_second_life)
            state->actors[i].at = NOT_BEGUN;
}

static bool take_step(struct state *state, const struct world *world, unsigned number)
{
    const struct plan *plan = &world->plans[number];
    struct actor *actor = &state->actors[number];
    struct turn turn = {state, world, number, plan->repo, plan->content};
    uint8_t at = actor->at;

    if (is_over(state, world, number) || !plan->program->steps[at]->take(&turn))
        return false;
    if (actor->at == at)
        actor->at++;
    /* Ended is ended, whatever was remembered. */
    if (is_over(state, world, number))
        *actor = (struct actor){.at = ENDED};
    return true;
}

/* The memory is lost, and with it the locks. */
static void kill_process(struct state *state, const struct world *world)
{
    state->is_killed = 1;
    memset(state->repo_holder, 0, sizeof(state->repo_holder));
    state->files_holder = 0;
    memset(state->fresh, 0, sizeof(state->fresh));
    state->marked = 0;
    for (unsigned i = 0; i < ACTORS; i++)
        state->actors[i] = (struct actor){.at = world->plans[i].is_second_life ? 0 : ENDED};
}

static bool choose_next(void *memory, unsigned choice, const void *context)
{
    struct state *state = memory;

    if (choice < ACTORS)
        return take_step(state, context, choice);
    if (state->is_killed)
        return false;
    kill_process(state, context);
    return true;
}

static void name_choice(const void *memory, unsigned choice, char *out, size_t size,
                        const void *context)
{
    const struct state *state = memory;
    const struct world *world = context;
    const struct program *program;

    if (choice >= ACTORS) {
        snprintf(out, size, "the process is killed");
        return;
    }
    program = world->plans[choice].program;
    snprintf(out, size, "%s %u %s", program->name, choice,
             program->steps[state->actors[choice].at]->name);
}

/* After a pass that runs alone. */
static bool is_clean_after_pass(struct state state, const struct world *world)
{
    struct world alone = *world;
    uint8_t named = 0;

    alone.passes = 1;
    alone.plans[0].program = world->collect;
    state.actors[0] = (struct actor){0};
    while (take_step(&state, &alone, 0))
        ;
    for (unsigned repo = 0; repo < REPOS; repo++)
        named |= named_in(&state, repo);
    return (state.kept & ~named) == 0;
}

static bool can_go_on(const struct state *state, const struct world *world)
{
    struct state next = *state;

    for (unsigned i = 0; i < ACTORS; i++)
        if (take_step(&next, world, i))
            return true;
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
    const struct world *world = context;

    if (state->wrong != RIGHT)
        return reasons[state->wrong];
    for (unsigned repo = 0; repo < REPOS; repo++)
        if (named_in(state, repo) & ~(state->kept | bit_of(state->folder[repo])))
            return "a file of a commit that is kept is gone";
    if (!are_all_over(state, world))
        return can_go_on(state, world) ? NULL : "actors wait for each other";
    return is_clean_after_pass(*state, world) ? NULL : "a pass leaves a file that no commit names";
}

static struct explored explored_world(const struct world *world)
{
    struct explore_model model = {sizeof(struct state), ACTORS + 1,  begin, choose_next,
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

#define SECOND_LIFE true

/* Two writers replace the file, and one pins a commit that may be forgotten meanwhile. */
static const struct world replaced = {
    .folder = {A, NOTHING},
    .commits_kept = 2,
    .passes = 2,
    .collect = &collect,
    .plans = {{.program = &put, .repo = 0, .content = B},
              {.program = &put, .repo = 0, .content = C},
              {.program = &tag, .repo = 0, .content = A},
              {.program = &collect},
              {.program = &read_oldest},
              {&put, 0, A, SECOND_LIFE}},
};

/* A file comes back under a commit that was forgotten, and is deleted. */
static const struct world back_and_forth = {
    .folder = {A, NOTHING},
    .commits_kept = 1,
    .passes = 2,
    .collect = &collect,
    .plans = {{.program = &put, .repo = 0, .content = B},
              {.program = &put, .repo = 0, .content = A},
              {.program = &put, .repo = 0, .content = NOTHING},
              {.program = &collect},
              {.program = &read_main},
              {&collect, .is_second_life = true}},
};

/* Two repositories have the same file, and one of them forgets it. */
static const struct world shared = {
    .folder = {A, A},
    .commits_kept = 1,
    .passes = 1,
    .collect = &collect,
    .plans = {{.program = &put, .repo = 0, .content = B},
              {.program = &put, .repo = 1, .content = B},
              {.program = &put, .repo = 1, .content = C},
              {.program = &collect},
              {.program = &read_oldest, .repo = 1},
              {&put, 0, C, SECOND_LIFE}},
};

/* A branch gets a file that the folder never had. */
static const struct world branched = {
    .folder = {A, NOTHING},
    .commits_kept = 1,
    .passes = 2,
    .collect = &collect,
    .plans = {{.program = &commit_to_branch, .repo = 0, .content = C},
              {.program = &put, .repo = 0, .content = B},
              {.program = &commit_kept_file, .repo = 0, .content = A},
              {.program = &collect},
              {.program = &read_branch},
              {&collect, .is_second_life = true}},
};

/* Going back to a commit that has a tag, while the tag is deleted. */
static const struct world rolled_back = {
    .folder = {A, NOTHING},
    .commits_kept = 2,
    .passes = 2,
    .collect = &collect,
    .plans = {{.program = &put, .repo = 0, .content = B},
              {.program = &roll_back, .repo = 0, .content = A},
              {.program = &untag},
              {.program = &collect},
              {.program = &read_oldest},
              {&roll_back, 0, A, SECOND_LIFE}},
};

/* All commits are forgotten, but the folder still has its file. */
static const struct world purged = {
    .folder = {A, NOTHING},
    .commits_kept = 2,
    .passes = 2,
    .collect = &collect,
    .plans = {{.program = &put, .repo = 0, .content = B},
              {.program = &purge},
              {.program = &put, .repo = 0, .content = A},
              {.program = &collect},
              {.program = &read_oldest},
              {&put, 0, C, SECOND_LIFE}},
};

TEST(replaced_files_stay_with_their_commits)
{
    assert_right(&replaced);
}

TEST(files_that_come_back_are_kept)
{
    assert_right(&back_and_forth);
}

TEST(files_of_two_repositories_are_kept_for_both)
{
    assert_right(&shared);
}

TEST(commits_to_branches_keep_their_files)
{
    assert_right(&branched);
}

TEST(going_back_finds_the_files_of_the_commit)
{
    assert_right(&rolled_back);
}

TEST(files_are_kept_again_after_a_purge)
{
    assert_right(&purged);
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

/* Moves a step before another one. */
static struct program moved(const struct program *program, const struct step *step,
                            const struct step *before)
{
    struct program made = {.name = program->name};
    const struct program rest = without(program, step);
    bool is_moved = false;
    unsigned count = 0;

    for (unsigned i = 0; rest.steps[i] != NULL; i++) {
        if (rest.steps[i] == before && !is_moved) {
            made.steps[count++] = step;
            is_moved = true;
        }
        made.steps[count++] = rest.steps[i];
    }
    assert_true(is_moved);
    return made;
}

static const char gone[] = "a file of a commit that is kept is gone";

/* Explores a world in which some follow a wrong program. ZT_TRACES prints what they do. */
static void assert_found(const struct world *world, const struct program *right,
                         struct program wrong, const char *reason)
{
    struct world mistaken = *world;
    struct explored explored;

    for (unsigned i = 0; i < ACTORS; i++)
        if (mistaken.plans[i].program == right)
            mistaken.plans[i].program = &wrong;
    if (mistaken.collect == right)
        mistaken.collect = &wrong;
    explored = explored_world(&mistaken);
    assert_non_null(explored.wrong);
    assert_string_equal(explored.wrong, reason);
    if (getenv("ZT_TRACES") != NULL)
        print_message("%s", explored.trace);
}

TEST(finds_a_file_that_is_linked_without_protection)
{
    struct program wrong = without(&put, &protect_old);

    assert_found(&replaced, &put, wrong, gone);
}

TEST(finds_a_file_that_is_protected_after_its_link)
{
    struct program late = {
        "put",
        {&lock_repo, &record_found, &link_old, &protect_old, &publish, &protect_new, &record,
         &unlock_repo, &acknowledge},
    };

    assert_found(&replaced, &put, late, gone);
}

TEST(finds_a_publication_before_the_link)
{
    assert_found(&replaced, &put, moved(&put, &publish, &link_old), gone);
}

TEST(finds_an_entry_before_the_publication)
{
    assert_found(&replaced, &put, moved(&put, &record, &publish), gone);
}

TEST(finds_writers_without_the_lock_of_the_repository)
{
    assert_found(&replaced, &put, without(&put, &lock_repo),
                 "an acknowledged change does not have one entry");
}

TEST(finds_a_sweep_without_the_lock)
{
    assert_found(&replaced, &collect, without(&collect, &lock_files), gone);
}

TEST(finds_a_pass_that_begins_after_the_mark)
{
    assert_found(&replaced, &collect, moved(&collect, &begin_pass, &lock_files), gone);
}

TEST(finds_protection_that_never_ends)
{
    assert_found(&replaced, &collect, without(&collect, &begin_pass),
                 "a pass leaves a file that no commit names");
}

TEST(finds_a_staged_file_without_protection)
{
    assert_found(&branched, &commit_to_branch, without(&commit_to_branch, &protect_new), gone);
}

TEST(finds_protection_that_ends_while_the_repository_is_locked)
{
    assert_found(&branched, &commit_to_branch, without(&commit_to_branch, &lock_repo), gone);
}

TEST(finds_a_kept_file_that_is_looked_up_before_its_protection)
{
    assert_found(&branched, &commit_kept_file,
                 moved(&commit_kept_file, &find_kept_file, &protect_new), gone);
}

TEST(finds_a_commit_that_is_looked_up_before_the_lock)
{
    assert_found(&replaced, &tag, moved(&tag, &find_commit, &lock_repo), gone);
}

TEST(finds_a_reader_that_does_not_look_again)
{
    struct program wrong = {"read", {&resolve_main, &look_in_kept, &look_in_folder, &give_up}};

    assert_found(&back_and_forth, &read_main, wrong,
                 "a reader does not find a file of a commit that is kept");
}
