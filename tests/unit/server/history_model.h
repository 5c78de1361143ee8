/* A small model of the history (store/versions/history.h): its state on disk and in memory, and
 * each operation as a list of steps, in the order of the code. */
#ifndef HISTORY_MODEL_H
#define HISTORY_MODEL_H

#include "tests.h"

#include <stdint.h>
#include <string.h>

#define REPOS     2
#define ACTORS    7
#define LOG_MAX   8
#define STEPS_MAX 24
#define NOT_BEGUN (STEPS_MAX - 2) /* in the second life, which begins with a kill */
#define ENDED     (STEPS_MAX - 1)
#define FRESH     0x80
#define NO_COMMIT 0xff
#define FOLDER    0xff /* "by" of an entry that was found in the folder */

/* A repository has one file, and a content is a number. The identity of a commit is computed from
 * its contents (history_commit_id), so it is the same number. */
enum { NOTHING, A, B, C, CONTENTS };

static uint8_t bit_of(uint8_t content)
{
    return content == NOTHING ? 0 : (uint8_t)(1U << content);
}

enum wrong { RIGHT, LOST_FOR_READER, NOT_ONE_ENTRY };

struct entry {
    uint8_t commit;
    uint8_t by; /* actor, or FOLDER */
};

struct actor {
    uint8_t at;      /* step */
    uint8_t commit;  /* that it reads */
    uint8_t is_lost; /* this commit was forgotten meanwhile */
    uint8_t chosen;  /* file to unlink */
    uint8_t passes;  /* that are over */
    uint8_t changes; /* that it has made and not recorded */
};

/* Bytes only, so that equal states have equal bytes. */
struct state {
    /* On disk */
    uint8_t folder[REPOS];
    uint8_t kept; /* bits of contents */
    uint8_t entries[REPOS];
    struct entry log[REPOS][LOG_MAX]; /* the oldest first */
    uint8_t tags[REPOS];
    uint8_t sides[REPOS]; /* heads of a second branch */
    /* In memory */
    uint8_t repo_holder[REPOS]; /* actor + 1 */
    uint8_t files_holder;
    /* Per file: FRESH, and bits of the repositories that have been locked since it was protected.
     * history_protect has generations for this. */
    uint8_t fresh[CONTENTS];
    uint8_t marked;
    struct actor actors[ACTORS];
    uint8_t is_killed;
    uint8_t wrong;
};

struct turn {
    struct state *state;
    const struct world *world;
    unsigned actor;
    unsigned repo;
    uint8_t content;
};

struct step {
    const char *name;
    bool (*take)(const struct turn *turn); /* returns false if the actor has to wait */
};

struct program {
    const char *name;
    const struct step *steps[STEPS_MAX];
};

/* What an actor does, and where. Content: what it publishes, or the commit that it tags or rolls
 * back to. */
struct plan {
    const struct program *program;
    uint8_t repo;
    uint8_t content;
    bool is_second_life;
};

struct world {
    uint8_t folder[REPOS]; /* at the beginning, when nothing is recorded */
    uint8_t commits_kept;
    uint8_t passes; /* of the collector */
    const struct program *collect;
    struct plan plans[ACTORS];
};

/* --- the disk --- */

static uint8_t head_of(const struct state *state, unsigned repo)
{
    unsigned count = state->entries[repo];

    return count == 0 ? NO_COMMIT : state->log[repo][count - 1].commit;
}

static bool is_kept_commit(const struct state *state, unsigned repo, uint8_t commit)
{
    bool is_kept = state->sides[repo] == commit || state->tags[repo] == commit;

    for (unsigned i = 0; i < state->entries[repo]; i++)
        is_kept = is_kept || state->log[repo][i].commit == commit;
    return is_kept;
}

/* Returns the files that kept commits name. */
static uint8_t named_in(const struct state *state, unsigned repo)
{
    uint8_t named = 0;

    for (uint8_t content = A; content < CONTENTS; content++)
        if (is_kept_commit(state, repo, content))
            named |= bit_of(content);
    return named;
}

static void append(struct state *state, unsigned repo, uint8_t commit, uint8_t by)
{
    assert_true(state->entries[repo] < LOG_MAX);
    state->log[repo][state->entries[repo]++] = (struct entry){commit, by};
}

/* --- steps --- */

#define STEP(id, text)                               \
    static bool take_##id(const struct turn *turn);  \
    static const struct step id = {text, take_##id}; \
    static bool take_##id(const struct turn *turn)

static bool lock(uint8_t *holder, unsigned actor)
{
    if (*holder != 0)
        return false;
    *holder = (uint8_t)(actor + 1);
    return true;
}

static void go_to(const struct turn *turn, const struct step *step)
{
    const struct plan *plan = &turn->world->plans[turn->actor];
    struct actor *actor = &turn->state->actors[turn->actor];

    while (plan->program->steps[actor->at] != step)
        actor->at++;
}

/* history_lock */
STEP(lock_repo, "locks the repository")
{
    return lock(&turn->state->repo_holder[turn->repo], turn->actor);
}

/* history_unlock */
STEP(unlock_repo, "unlocks the repository")
{
    turn->state->repo_holder[turn->repo] = 0;
    for (unsigned content = A; content < CONTENTS; content++)
        turn->state->fresh[content] &= (uint8_t) ~(1U << turn->repo);
    return true;
}

STEP(lock_files, "locks the kept files")
{
    return lock(&turn->state->files_holder, turn->actor);
}

STEP(unlock_files, "unlocks the kept files")
{
    turn->state->files_holder = 0;
    return true;
}

/* Notes which readers have a commit that is not kept any more. */
static void note_lost(const struct turn *turn)
{
    struct state *state = turn->state;

    for (unsigned i = 0; i < ACTORS; i++)
        if (turn->world->plans[i].repo == turn->repo && state->actors[i].commit != NOTHING &&
            !is_kept_commit(state, turn->repo, state->actors[i].commit))
            state->actors[i].is_lost = 1;
}

/* Makes old commits of main go, except those that have a tag. */
static void forget(const struct turn *turn)
{
    struct state *state = turn->state;
    struct entry *log = state->log[turn->repo];
    unsigned entries = state->entries[turn->repo];
    unsigned left = 0;

    for (unsigned i = 0; i < entries; i++)
        if (i + turn->world->commits_kept >= entries || log[i].commit == state->tags[turn->repo])
            log[left++] = log[i];
    memset(log + left, 0, (LOG_MAX - left) * sizeof(*log));
    state->entries[turn->repo] = (uint8_t)left;
    note_lost(turn);
}

/* history_protect takes and releases the lock of the kept files. */
static bool protect(const struct turn *turn, uint8_t content)
{
    struct state *state = turn->state;

    if (state->files_holder != 0)
        return false;
    if (content == NOTHING)
        return true;
    state->fresh[content] = FRESH;
    for (unsigned repo = 0; repo < REPOS; repo++)
        if (state->repo_holder[repo] != 0)
            state->fresh[content] |= (uint8_t)(1U << repo);
    return true;
}

STEP(protect_old, "protects the file of the folder")
{
    return protect(turn, turn->state->folder[turn->repo]);
}

STEP(protect_new, "protects the new file")
{
    return protect(turn, turn->content);
}

STEP(record_found, "records what was put into the folder by hand")
{
    uint8_t head = head_of(turn->state, turn->repo);
    uint8_t there = turn->state->folder[turn->repo];

    if (head == there || (head == NO_COMMIT && there == NOTHING))
        return true;
    append(turn->state, turn->repo, there, FOLDER);
    forget(turn);
    return true;
}

STEP(link_old, "links the old file")
{
    turn->state->kept |= bit_of(turn->state->folder[turn->repo]);
    return true;
}

STEP(link_new, "links the new file")
{
    turn->state->kept |= bit_of(turn->content);
    return true;
}

STEP(publish, "publishes the new file")
{
    turn->state->actors[turn->actor].changes += turn->state->folder[turn->repo] != turn->content;
    turn->state->folder[turn->repo] = turn->content;
    return true;
}

/* history_record writes the entry and what is forgotten in one record. */
STEP(record, "records the commit")
{
    if (head_of(turn->state, turn->repo) == turn->content)
        return true;
    append(turn->state, turn->repo, turn->content, (uint8_t)turn->actor);
    turn->state->actors[turn->actor].changes--;
    forget(turn);
    return true;
}

STEP(record_side, "records the commit on a branch")
{
    turn->state->sides[turn->repo] = turn->content;
    forget(turn);
    return true;
}

STEP(acknowledge, "is acknowledged")
{
    const struct actor *actor = &turn->state->actors[turn->actor];

    if (actor->changes != 0)
        turn->state->wrong = NOT_ONE_ENTRY;
    return true;
}

STEP(find_commit, "finds the commit")
{
    if (is_kept_commit(turn->state, turn->repo, turn->content))
        return true;
    if (turn->state->repo_holder[turn->repo] == turn->actor + 1)
        go_to(turn, &unlock_repo);
    else
        turn->state->actors[turn->actor].at = ENDED;
    return true;
}

STEP(find_kept_file, "finds the file among the kept ones")
{
    if ((turn->state->kept & bit_of(turn->content)) == 0)
        go_to(turn, &unlock_repo);
    return true;
}

STEP(set_tag, "sets the tag")
{
    turn->state->tags[turn->repo] = turn->content;
    return true;
}

STEP(delete_tag, "deletes the tag")
{
    turn->state->tags[turn->repo] = NO_COMMIT;
    forget(turn);
    return true;
}

STEP(clear_log, "clears the log")
{
    struct state *state = turn->state;

    memset(state->log[turn->repo], 0, sizeof(state->log[turn->repo]));
    state->entries[turn->repo] = 0;
    state->tags[turn->repo] = NO_COMMIT;
    state->sides[turn->repo] = NO_COMMIT;
    note_lost(turn);
    return true;
}

/* Files that were protected before stay so while one of these repositories is locked. */
STEP(begin_pass, "begins a pass")
{
    for (unsigned content = A; content < CONTENTS; content++)
        if (turn->state->fresh[content] == FRESH)
            turn->state->fresh[content] = 0;
    turn->state->marked = 0;
    return true;
}

/* Does not wait for the lock of the repository. */
static bool mark(const struct turn *turn, unsigned repo)
{
    turn->state->marked |= named_in(turn->state, repo);
    return true;
}

STEP(mark_first, "marks the files of the first repository")
{
    return mark(turn, 0);
}

STEP(mark_second, "marks the files of the second repository")
{
    return mark(turn, 1);
}

static bool choose(const struct turn *turn, uint8_t content)
{
    struct actor *actor = &turn->state->actors[turn->actor];
    bool is_named = (turn->state->marked & bit_of(content)) != 0;

    actor->chosen = is_named || turn->state->fresh[content] != 0 ? NOTHING : content;
    return true;
}

STEP(choose_a, "decides about A")
{
    return choose(turn, A);
}

STEP(choose_b, "decides about B")
{
    return choose(turn, B);
}

STEP(choose_c, "decides about C")
{
    return choose(turn, C);
}

STEP(unlink_chosen, "unlinks it unless it is needed")
{
    turn->state->kept &= (uint8_t)~bit_of(turn->state->actors[turn->actor].chosen);
    turn->state->actors[turn->actor].chosen = NOTHING;
    return true;
}

STEP(repeat, "ends the pass")
{
    struct actor *actor = &turn->state->actors[turn->actor];

    if (++actor->passes < turn->world->passes)
        actor->at = 0;
    return true;
}

/* Ends the reader if there is no such commit, or no file in it. */
static bool resolve(const struct turn *turn, uint8_t commit)
{
    struct actor *actor = &turn->state->actors[turn->actor];

    if (commit == NO_COMMIT || commit == NOTHING)
        actor->at = ENDED;
    else
        actor->commit = commit;
    return true;
}

STEP(resolve_main, "resolves main")
{
    return resolve(turn, head_of(turn->state, turn->repo));
}

STEP(resolve_oldest, "resolves the oldest commit")
{
    bool is_empty = turn->state->entries[turn->repo] == 0;

    return resolve(turn, is_empty ? NO_COMMIT : turn->state->log[turn->repo][0].commit);
}

STEP(resolve_side, "resolves the branch")
{
    return resolve(turn, turn->state->sides[turn->repo]);
}

static bool look(const struct turn *turn, bool is_there)
{
    if (is_there)
        turn->state->actors[turn->actor].at = ENDED;
    return true;
}

static bool is_kept_file(const struct turn *turn)
{
    return (turn->state->kept & bit_of(turn->state->actors[turn->actor].commit)) != 0;
}

STEP(look_in_kept, "looks among the kept files")
{
    return look(turn, is_kept_file(turn));
}

STEP(look_in_folder, "looks in the folder")
{
    return look(turn, turn->state->folder[turn->repo] == turn->state->actors[turn->actor].commit);
}

/* Now the answer is that the commit is not kept. */
STEP(give_up, "does not find the file")
{
    if (!turn->state->actors[turn->actor].is_lost)
        turn->state->wrong = LOST_FOR_READER;
    return true;
}

/* --- programs --- */

/* recording_begin (history_record protects all files of a commit), history_keep_file,
 * store_publish, recording_end. A deletion publishes NOTHING. */
static const struct program put = {
    "put",
    {&lock_repo, &protect_old, &record_found, &protect_old, &link_old, &publish, &protect_new,
     &record, &unlock_repo, &acknowledge},
};

/* history_keep_staged, history_record */
static const struct program commit_to_branch = {
    "branch",
    {&lock_repo, &protect_new, &link_new, &record_side, &unlock_repo},
};

/* history_record, if the client sends no bytes because the file is kept */
static const struct program commit_kept_file = {
    "branch",
    {&lock_repo, &protect_new, &find_kept_file, &record_side, &unlock_repo},
};

/* recording_restore */
static const struct program roll_back = {
    "rollback",
    {&lock_repo, &protect_old, &record_found, &find_commit, &protect_old, &link_old, &publish,
     &protect_new, &record, &unlock_repo, &acknowledge},
};

/* history_set_ref, history_delete_ref */
static const struct program tag = {"tag", {&lock_repo, &find_commit, &set_tag, &unlock_repo}};
static const struct program untag = {"untag", {&lock_repo, &delete_tag, &unlock_repo}};

/* history_purge */
static const struct program purge = {"purge", {&lock_repo, &clear_log, &unlock_repo}};

/* history_begin_collecting, mark_repo for each repository, remove_object for each kept file */
static const struct program collect = {
    "collect",
    {&begin_pass, &mark_first, &mark_second, &lock_files, &choose_a, &unlink_chosen, &unlock_files,
     &lock_files, &choose_b, &unlink_chosen, &unlock_files, &lock_files, &choose_c, &unlink_chosen,
     &unlock_files, &repeat},
};

/* versions_open_file looks again among the kept files, because the file may have been kept and
 * replaced after the first look. */
#define LOOKS                                                                      \
    &look_in_kept, &look_in_folder, &look_in_kept, &look_in_folder, &look_in_kept, \
        &look_in_folder, &give_up

static const struct program read_main = {"read", {&resolve_main, LOOKS}};
static const struct program read_oldest = {"read", {&resolve_oldest, LOOKS}};
static const struct program read_branch = {"read", {&resolve_side, LOOKS}};

#endif
