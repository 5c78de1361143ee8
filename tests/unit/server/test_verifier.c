/* The verifier: verdicts, one check for many requests, reports, and what is saved across
 * restarts. */
#include "model_world.h"

#include "verify/verification.h"

#include <errno.h>
#include <sys/resource.h>

#define DESCRIPTORS 128

enum { A, B, C, D };

/* What the catalog does with a new generation. */
static void report_opened(const struct world *world, struct generation *generation)
{
    const struct catalog_observer observer = verifier_observer(world->server.verifier);

    observer.opened(observer.context, generation);
}

static void report_loaded(const struct world *world, const char *const *paths, size_t count)
{
    const struct catalog_observer observer = verifier_observer(world->server.verifier);

    observer.loaded(observer.context, paths, count);
}

/* Opens a file as the catalog does. */
static struct generation *adopt(struct world *world, const char *path)
{
    struct generation *generation = generation_open(&world->server, path, NULL);

    assert_non_null(generation);
    assert_non_null(generation->model);
    report_opened(world, generation);
    return generation;
}

static struct generation *adopt_model(struct world *world, bool sound)
{
    world_model(world, "m.zt", sound);
    return adopt(world, "m.zt");
}

static void restart(struct world *world)
{
    world_stop(world);
    world_start(world);
}

static char *report_of(struct generation *generation)
{
    struct json json;

    json_init(&json, false);
    verifier_report(generation, &json);
    assert_false(json.failed);
    json.text = realloc(json.text, json.length + 1);
    json.text[json.length] = '\0';
    return json.text;
}

static void assert_report_holds(struct generation *generation, const char *part)
{
    char *report = report_of(generation);

    if (strstr(report, part) == NULL)
        fail_msg("%s is not in %s", part, report);
    free(report);
}

static void wait_until_run_ends(struct generation *generation)
{
    for (int i = 0; i < 3000; i++) {
        char *report = report_of(generation);
        bool running = strstr(report, "\"running\"") != NULL;

        free(report);
        if (!running)
            return;
        pause_ms(1);
    }
    fail_msg("the run does not end");
}

WITH_MODELS(verdicts_distinguish_right_wrong_and_unknown)
{
    struct generation *generation = adopt_model(world, false);

    assert_int_equal(world_verdict(world, generation, A), COMPONENT_VERIFIED);
    assert_int_equal(world_verdict(world, generation, B), COMPONENT_CORRUPT);
    assert_int_equal(world_verdict(world, generation, C), COMPONENT_UNDIGESTED);
    assert_int_equal(world_verdict(world, generation, D), COMPONENT_UNSUPPORTED);
    assert_int_equal(world_verdict(world, generation, B), COMPONENT_CORRUPT);
    generation_release(generation);
}

/* As if the file had been written to while it was hashed: the verdict would be about bytes that are
 * not the generation's. */
WITH_MODELS(verdicts_about_bytes_that_changed_are_not_kept)
{
    struct generation *generation = adopt_model(world, true);

    world_overwrite(world, "m.zt", 64);
    assert_int_equal(world_verdict(world, generation, A), COMPONENT_CORRUPT);
    assert_int_equal(atomic_load(&generation->states[A]), COMPONENT_UNCHECKED);
    assert_int_equal(world_verdict(world, generation, B), COMPONENT_CORRUPT);
    assert_int_equal(atomic_load(&generation->states[B]), COMPONENT_UNCHECKED);
    assert_report_holds(generation, "\"verified\":0,\"failed\":0,");
    generation_release(generation);
}

WITH_MODELS(reports_follow_what_is_known)
{
    struct generation *generation = adopt_model(world, false);

    assert_report_holds(generation,
                        "{\"state\":\"unverified\",\"components\":{\"total\":4,\"verified\":0,"
                        "\"failed\":0,\"unsupported\":1,"
                        "\"undigested\":1},\"bytes\":{\"total\":32,\"hashed\":0},\"failures\":[]}");
    assert_int_equal(world_verdict(world, generation, A), COMPONENT_VERIFIED);
    assert_report_holds(generation,
                        "{\"state\":\"unverified\",\"components\":{\"total\":4,\"verified\":1,");
    assert_report_holds(generation, "\"hashed\":16}");
    assert_int_equal(world_verdict(world, generation, B), COMPONENT_CORRUPT);
    assert_report_holds(
        generation,
        "{\"state\":\"failed\",\"components\":{\"total\":4,\"verified\":1,\"failed\":1,");
    assert_report_holds(
        generation,
        "\"failures\":[{\"object\":\"b\",\"component\":\"data\",\"expected\":\"sha256:");
    generation_release(generation);
}

WITH_MODELS(a_run_checks_everything_again)
{
    struct generation *generation = adopt_model(world, true);

    for (int i = 0; i < 2; i++) {
        verifier_start(world->server.verifier, generation, JOB_OF_SERVER);
        verifier_start(world->server.verifier, generation, JOB_OF_SERVER);
        wait_until_run_ends(generation);
        assert_report_holds(
            generation,
            "{\"state\":\"verified\",\"components\":{\"total\":4,\"verified\":2,\"failed\":0,"
            "\"unsupported\":1,"
            "\"undigested\":1},\"bytes\":{\"total\":32,\"hashed\":32},\"failures\":[]}");
    }
    generation_release(generation);
}

WITH_MODELS(a_run_keeps_what_is_corrupt_from_being_served)
{
    struct generation *generation = adopt_model(world, false);

    assert_int_equal(world_verdict(world, generation, B), COMPONENT_CORRUPT);
    for (int i = 0; i < 50; i++) {
        verifier_start(world->server.verifier, generation, JOB_OF_SERVER);
        assert_int_equal(world_verdict(world, generation, B), COMPONENT_CORRUPT);
    }
    wait_until_run_ends(generation);
    assert_report_holds(generation, "\"verified\":1,\"failed\":1,");
    generation_release(generation);
}

WITH_MODELS(a_run_reports_broken_content_rules)
{
    struct container container = {0};
    struct generation *generation;

    container_make(&container, CONTAINER_ZT1, 16,
                   "{\"version\":\"1.2.0\",\"objects\":{\"x\":{\"shape\":[16],\"format\":\"dense\","
                   "\"components\":{\"data\":{"
                   "\"dtype\":\"bool\",\"offset\":64,\"length\":16}}}}}");
    world_write(world, "m.zt", container.bytes, container.length);
    container_free(&container);
    for (int i = 0; i < 2; i++) {
        generation = adopt(world, "m.zt");
        if (i == 0)
            verifier_start(world->server.verifier, generation, JOB_OF_SERVER);
        wait_until_run_ends(generation);
        assert_report_holds(
            generation,
            "{\"state\":\"failed\",\"components\":{\"total\":1,\"verified\":0,\"failed\":1,"
            "\"unsupported\":0,\"undigested\":0}");
        assert_report_holds(generation,
                            "{\"object\":\"x\",\"component\":\"data\",\"expected\":null,\"actual\":"
                            "null,\"rule\":\"");
        generation_release(generation);
        restart(world);
    }
}

WITH_MODELS(verdicts_of_uploads_are_taken_over_and_saved)
{
    struct generation *generation;
    unsigned char verdicts[] = {ZT_VERDICT_VERIFIED, ZT_VERDICT_VERIFIED, ZT_VERDICT_UNDIGESTED,
                                ZT_VERDICT_UNSUPPORTED};

    world_model(world, "m.zt", false);
    generation = adopt(world, "m.zt");
    assert_int_equal(world_verdict(world, generation, B), COMPONENT_CORRUPT);
    verifier_learn(world->server.verifier, generation, verdicts, 3);
    assert_int_equal(atomic_load(&generation->states[A]), COMPONENT_UNCHECKED);
    verifier_learn(world->server.verifier, generation, verdicts, 4);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(atomic_load(&generation->states[A]), COMPONENT_VERIFIED);
        assert_int_equal(atomic_load(&generation->states[B]), COMPONENT_CORRUPT);
        assert_int_equal(atomic_load(&generation->states[C]), COMPONENT_UNDIGESTED);
        assert_int_equal(atomic_load(&generation->states[D]), COMPONENT_UNSUPPORTED);
        assert_report_holds(generation, "\"hashed\":32}");
        generation_release(generation);
        restart(world);
        generation = adopt(world, "m.zt");
    }
    generation_release(generation);
}

WITH_MODELS(verdicts_survive_a_restart)
{
    struct generation *generation = adopt_model(world, false);

    assert_int_equal(world_verdict(world, generation, A), COMPONENT_VERIFIED);
    assert_int_equal(world_verdict(world, generation, B), COMPONENT_CORRUPT);
    generation_release(generation);
    restart(world);
    generation = adopt(world, "m.zt");
    assert_int_equal(atomic_load(&generation->states[A]), COMPONENT_VERIFIED);
    assert_int_equal(atomic_load(&generation->states[B]), COMPONENT_CORRUPT);
    assert_report_holds(
        generation,
        "\"failures\":[{\"object\":\"b\",\"component\":\"data\",\"expected\":\"sha256:");
    assert_report_holds(generation, "\"hashed\":32}");
    generation_release(generation);
    world_command(world, "test \"$(stat -c %a .ztserve)\" = 700");
}

WITH_MODELS(verdicts_are_saved_while_the_server_runs)
{
    struct generation *generation = adopt_model(world, true);

    assert_int_equal(world_verdict(world, generation, A), COMPONENT_VERIFIED);
    world_command(world,
                  "for i in $(seq 2000); do [ \"$(ls .ztserve/verified 2>/dev/null | wc -l)\" = "
                  "1 ] && exit 0; sleep 0.01; done; exit 1");
    generation_release(generation);
}

WITH_MODELS(verdicts_about_other_bytes_are_not_recalled)
{
    static const char *const changes[] = {"chmod 600 m.zt", "touch m.zt",
                                          "cp m.zt n.zt; mv n.zt m.zt"};
    struct generation *generation;

    world_model(world, "m.zt", true);
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        generation = adopt(world, "m.zt");
        assert_int_equal(atomic_load(&generation->states[A]), COMPONENT_UNCHECKED);
        assert_int_equal(world_verdict(world, generation, A), COMPONENT_VERIFIED);
        generation_release(generation);
        restart(world);
        world_command(world, changes[i]);
    }
    generation = adopt(world, "m.zt");
    assert_int_equal(atomic_load(&generation->states[A]), COMPONENT_UNCHECKED);
    generation_release(generation);
}

WITH_MODELS(verdicts_about_other_bytes_of_the_same_version_are_not_recalled_later)
{
    struct generation *generation = adopt_model(world, true);

    assert_int_equal(world_verdict(world, generation, A), COMPONENT_VERIFIED);
    generation_release(generation);
    restart(world);
    generation = generation_open(&world->server, "m.zt", NULL);
    assert_non_null(generation);
    generation->ignores_saved = true;
    report_opened(world, generation);
    assert_int_equal(atomic_load(&generation->states[A]), COMPONENT_UNCHECKED);
    generation_release(generation);
    restart(world);
    generation = adopt(world, "m.zt");
    assert_int_equal(atomic_load(&generation->states[A]), COMPONENT_UNCHECKED);
    generation_release(generation);
}

WITH_MODELS(damaged_files_of_verdicts_are_ignored)
{
    static const char *const damages[] = {
        "truncate -s -1 $f",
        "truncate -s 3 $f",
        ": > $f",
        "printf x >> $f",
        "printf '\\002' | dd of=$f bs=1 seek=90 conv=notrunc status=none",
        "rm $f; mkfifo $f",
        "rm $f; ln -s ../../m.zt $f"};
    struct generation *generation;

    world_model(world, "m.zt", true);
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        char command[256];

        world_command(world, "rm -f .ztserve/verified/*");
        restart(world);
        generation = adopt(world, "m.zt");
        assert_int_equal(world_verdict(world, generation, A), COMPONENT_VERIFIED);
        generation_release(generation);
        world_stop(world);
        snprintf(command, sizeof(command), "f=$(ls .ztserve/verified/*); %s", damages[i]);
        world_command(world, command);
        world_start(world);
        generation = adopt(world, "m.zt");
        assert_int_equal(atomic_load(&generation->states[A]), COMPONENT_UNCHECKED);
        generation_release(generation);
    }
}

WITH_MODELS(verdicts_about_models_that_are_gone_are_removed)
{
    static const char *const left[] = {"n.zt"};
    struct generation *generation;

    world_model(world, "m.zt", true);
    world_model(world, "n.zt", true);
    for (int i = 0; i < 2; i++) {
        generation = adopt(world, i == 0 ? "m.zt" : "n.zt");
        assert_int_equal(world_verdict(world, generation, A), COMPONENT_VERIFIED);
        generation_release(generation);
    }
    restart(world);
    world_command(world,
                  "touch .ztserve/verified/note; test \"$(ls .ztserve/verified | wc -l)\" = 3");
    report_loaded(world, left, 1);
    world_command(world, "test \"$(ls .ztserve/verified | wc -l)\" = 2");
    generation = adopt(world, "n.zt");
    assert_int_equal(atomic_load(&generation->states[A]), COMPONENT_VERIFIED);
    generation_release(generation);
}

WITH_MODELS(without_a_state_folder_verdicts_are_kept_in_memory)
{
    struct generation *generation;

    strcpy(world->config.state.dir, "/nonexistent/state");
    restart(world);
    world_model(world, "m.zt", true);
    generation = adopt(world, "m.zt");
    assert_int_equal(world_verdict(world, generation, A), COMPONENT_VERIFIED);
    assert_int_equal(world_verdict(world, generation, A), COMPONENT_VERIFIED);
    generation_release(generation);
}

WITH_MODELS(with_verify_off_nothing_is_checked)
{
    struct generation *generation;

    world->config.verify = CONFIG_VERIFY_OFF;
    world_model(world, "m.zt", false);
    generation = adopt(world, "m.zt");
    assert_int_equal(verifier_ask(world->server.verifier, generation, B, NULL),
                     COMPONENT_UNCHECKED);
    verifier_start(world->server.verifier, generation, JOB_OF_SERVER);
    wait_until_run_ends(generation);
    assert_int_equal(verifier_ask(world->server.verifier, generation, B, NULL), COMPONENT_CORRUPT);
    generation_release(generation);
}

static bool is_gone(const struct waiter *waiter)
{
    (void)waiter;
    return true;
}

WITH_MODELS(checks_end_when_all_waiters_are_gone)
{
    struct generation *generation = adopt_model(world, true);
    struct flag flag;

    flag_init(&flag);
    flag.waiter.is_gone = is_gone;
    assert_int_equal(verifier_ask(world->server.verifier, generation, A, &flag.waiter),
                     COMPONENT_CHECKING);
    flag_wait(&flag);
    assert_int_equal(atomic_load(&generation->states[A]), COMPONENT_UNCHECKED);
    assert_int_equal(world_verdict(world, generation, A), COMPONENT_VERIFIED);
    generation_release(generation);
}

/* For blobs, which clients keep for ever under their digest. */
WITH_MODELS(insisting_checks_even_with_verify_off)
{
    struct generation *generation;
    struct flag flag;

    world->config.verify = CONFIG_VERIFY_OFF;
    world_model(world, "m.zt", false);
    generation = adopt(world, "m.zt");
    flag_init(&flag);
    assert_int_equal(verifier_insist(world->server.verifier, generation, A, &flag.waiter),
                     COMPONENT_CHECKING);
    flag_wait(&flag);
    assert_int_equal(verifier_insist(world->server.verifier, generation, A, NULL),
                     COMPONENT_VERIFIED);
    assert_int_equal(verifier_insist(world->server.verifier, generation, B, &flag.waiter),
                     COMPONENT_CHECKING);
    flag_wait(&flag);
    assert_int_equal(verifier_insist(world->server.verifier, generation, B, NULL),
                     COMPONENT_CORRUPT);
    generation_release(generation);
}

WITH_MODELS(with_verify_eager_everything_is_checked_before_it_is_ready)
{
    struct generation *generations[3];

    world->config.verify = CONFIG_VERIFY_EAGER;
    assert_false(verifier_is_ready(world->server.verifier));
    world_command(world, "mkdir d");
    world_model(world, "a.zt", true);
    world_model(world, "d/b.zt", false);
    world_command(world, "cp a.zt c.zt");
    generations[0] = adopt(world, "a.zt");
    generations[1] = adopt(world, "d/b.zt");
    generations[2] = adopt(world, "c.zt");
    report_loaded(world, NULL, 0);
    AWAIT(verifier_is_ready(world->server.verifier));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(atomic_load(&generations[i]->states[A]), COMPONENT_VERIFIED);
        assert_int_equal(atomic_load(&generations[i]->states[B]),
                         i == 1 ? COMPONENT_CORRUPT : COMPONENT_VERIFIED);
        generation_release(generations[i]);
    }
}

WITH_MODELS(components_that_cannot_be_read_are_not_served)
{
    struct generation *generation;

    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
    world_model(world, "m.zt", true);
    generation = adopt(world, "m.zt");
    world_command(world, "truncate -s 70 m.zt");
    assert_int_equal(world_verdict(world, generation, A), COMPONENT_CORRUPT);
    assert_int_equal(atomic_load(&generation->states[A]), COMPONENT_UNCHECKED);
    generation_release(generation);
}

WITH_MODELS(nothing_is_served_unchecked_while_stopping)
{
    struct generation *generation = adopt_model(world, true);

    verifier_stop(world->server.verifier);
    verifier_start(world->server.verifier, generation, JOB_OF_SERVER);
    assert_int_equal(world_verdict(world, generation, A), COMPONENT_CORRUPT);
    generation_release(generation);
}

struct crowd {
    struct world *world;
    struct generation *generation;
};

static void *ask_all(void *argument)
{
    struct crowd *crowd = argument;

    for (int i = 0; i < 20; i++) {
        verifier_start(crowd->world->server.verifier, crowd->generation, JOB_OF_SERVER);
        if (world_verdict(crowd->world, crowd->generation, A) != COMPONENT_VERIFIED ||
            world_verdict(crowd->world, crowd->generation, B) != COMPONENT_CORRUPT)
            return crowd;
        free(report_of(crowd->generation));
    }
    return NULL;
}

WITH_MODELS(many_may_ask_at_once)
{
    pthread_t threads[4];

    world_model(world, "m.zt", false);
    for (int round = 0; round < 10; round++) {
        struct crowd crowd = {world, generation_open(&world->server, "m.zt", NULL)};

        world_command(world, "rm -f .ztserve/verified/*");
        report_opened(world, crowd.generation);
        for (int i = 0; i < 4; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, ask_all, &crowd), 0);
        for (int i = 0; i < 4; i++) {
            void *wrong = NULL;

            pthread_join(threads[i], &wrong);
            assert_null(wrong);
        }
        generation_release(crowd.generation);
    }
}

/* Takes all descriptors that are left. */
static int take_descriptors(int *taken, int room)
{
    int count = 0;

    while (count < room && (taken[count] = open("/dev/null", O_RDONLY)) >= 0)
        count++;
    assert_int_equal(errno, EMFILE);
    return count;
}

/* A run's file was closed meanwhile, and there is no descriptor to open it with: each unit tries
 * until there is one. */
WITH_MODELS(units_wait_for_descriptors)
{
    struct rlimit before;
    struct rlimit few;
    struct generation *other;
    struct generation *model;
    int taken[DESCRIPTORS];
    int count;

    world_model(world, "m.zt", true);
    world_model(world, "other.zt", true);
    world_wait_loaded(world);
    model = world_find(world, "m");
    other = world_find(world, "other");
    parking_hold_idle(model);
    generation_release(model);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){DESCRIPTORS, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    count = take_descriptors(taken, DESCRIPTORS);
    /* Closes the file of m, which nobody reads, and takes its descriptor. */
    generation_release(catalog_update(world->server.catalog, "absent.zt"));
    assert_true(atomic_load(&model->parked));
    count += take_descriptors(taken + count, DESCRIPTORS - count);
    verifier_start(world->server.verifier, model, JOB_OF_SERVER);
    /* More often than there are units, each of which would be skipped. */
    for (unsigned i = 0; i < 2 * (model->model->component_count + model->model->object_count); i++)
        AWAIT(atomic_exchange(&model->used, false));
    while (count > 0)
        close(taken[--count]);
    wait_until_run_ends(model);
    for (uint32_t i = 0; i < model->model->component_count; i++)
        assert_int_not_equal(atomic_load(&model->states[i]), COMPONENT_UNCHECKED);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    generation_release(other);
    parking_release_idle(model);
}
