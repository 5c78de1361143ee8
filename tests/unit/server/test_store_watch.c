/* The local store: how changes are noticed, and what a look visits. */
#include "store_world.h"

#include <poll.h>

/* Whether a change is reported within some time. */
static bool reported(const struct world *world, int descriptor, int timeout_ms)
{
    struct pollfd wait = {.fd = descriptor, .events = POLLIN};

    while (poll(&wait, 1, timeout_ms) == 1)
        if (world->store->ops->changed(world->store))
            return true;
    return false;
}

WITH_STORE(changes_are_reported_at_once)
{
    int descriptor = world->store->ops->watch(world->store);

    assert_true(descriptor >= 0);
    assert_true(reported(world, descriptor, 500));
    assert_lists(world, "");
    assert_false(reported(world, descriptor, 100));
    command(world, "mkdir new");
    assert_true(reported(world, descriptor, 500));
    command(world, "echo x > new/m.zt");
    assert_lists(world, "new/m.zt ");
    command(world, "echo y >> new/m.zt");
    assert_true(reported(world, descriptor, 500));
    command(world, "mv new/m.zt new/n.zt");
    assert_true(reported(world, descriptor, 500));
    command(world, "rm -r new");
    assert_true(reported(world, descriptor, 500));
    assert_lists(world, "");
}

static bool collect_look(void *context, const char *path, const struct file_identity *identity)
{
    char *list = context;

    strcat(strcat(list, identity == NULL ? "-" : ""), path);
    strcat(list, " ");
    return true;
}

/* Asserts what a look after a command visits, or with NULL that everything must be listed. */
static void assert_look(const struct world *world, const char *text, const char *expected)
{
    char list[4096] = "";
    bool whole = false;

    world->store->ops->list(world->store, collect, list, NULL);
    list[0] = '\0';
    /* Until the store's timer has no say. */
    while (world->store->ops->changed(world->store))
        world->store->ops->list_changes(world->store, collect_look, list, &whole, NULL);
    list[0] = '\0';
    command(world, text);
    assert_true(world->store->ops->changed(world->store));
    assert_ok(world->store->ops->list_changes(world->store, collect_look, list, &whole, NULL));
    if (expected == NULL)
        assert_true(whole);
    else if (whole)
        fail_msg("%s needs a list of everything", text);
    else
        assert_string_equal(list, expected);
}

WITH_STORE(a_look_visits_only_what_changed)
{
    command(world, "mkdir -p a/b; for i in 1 2 3; do echo $i > a/b/m$i.zt; echo $i > n$i.zt; done");
    assert_true(world->store->ops->watch(world->store) >= 0);
    assert_look(world, "echo 2 >> a/b/m2.zt", "a/b/m2.zt ");
    assert_look(world, "rm n1.zt", "-n1.zt ");
    assert_look(world, "mv n2.zt a/n9.zt", "-n2.zt a/n9.zt ");
    assert_look(world, "mkdir c", "");
    assert_look(world, "mkdir -p ../outside/d/e; touch ../outside/d/e/m.zt; mv ../outside/d d",
                "d/e/m.zt ");
    assert_look(world, "touch -m d/e/m.zt", "d/e/m.zt ");
    assert_look(world, "touch other.txt .hidden.zt", "");
}

WITH_STORE(folders_found_by_a_look_are_watched)
{
    char list[256] = "";
    bool whole = false;

    assert_true(world->store->ops->watch(world->store) >= 0);
    assert_look(world, "mkdir -p ../outside/d/e; mv ../outside/d d", "");
    command(world, "echo 1 > d/e/m.zt");
    assert_true(world->store->ops->changed(world->store));
    world->store->ops->list_changes(world->store, collect_look, list, &whole, NULL);
    assert_false(whole);
    assert_non_null(strstr(list, "d/e/m.zt "));
}

WITH_STORE(what_a_look_cannot_know_needs_a_list)
{
    command(world, "mkdir -p a/b c; touch a/b/m.zt c/m.zt");
    assert_true(world->store->ops->watch(world->store) >= 0);
    assert_look(world, "mv a d", NULL);
    assert_look(world, "rm -r c", NULL);
    assert_look(world, "ln d/b/m.zt n.zt", NULL);
    assert_look(world, "touch weights.h5", NULL);
    assert_look(world, "touch \"$(printf 'bad\\001name.zt')\"", NULL);
    assert_look(world, "mkfifo f.zt", NULL);
    assert_look(world, "chmod 700 d", NULL);
    assert_look(world, "ln -s d/b/m.zt link.zt", NULL);
    /* Whatever changes in a tree with links. */
    assert_look(world, "echo 1 > plain.zt", NULL);
}

WITH_STORE(changes_of_hidden_files_are_not_reported)
{
    int descriptor = world->store->ops->watch(world->store);

    command(world, "mkdir -p .ztserve/verified");
    assert_lists(world, "");
    reported(world, descriptor, 0);
    command(
        world,
        "touch .x .ztserve/verified/abc; rm .x; echo 1 > note.txt.part; rm .ztserve/verified/abc");
    /* Creation and removal of another name may be a link to a folder: one telling, no more. */
    reported(world, descriptor, 50);
    command(world,
            "touch .ztserve/y; mv .ztserve/y .ztserve/z; rm .ztserve/z; touch .q; mv .q .r; rm .r");
    assert_false(reported(world, descriptor, 200));
}

WITH_STORE(the_timer_asks_for_a_scan_within_three_seconds)
{
    int descriptor = world->store->ops->watch(world->store);

    assert_lists(world, "");
    reported(world, descriptor, 0);
    assert_true(reported(world, descriptor, 2500));
    /* Reported once, until the next scan sets the timer again. */
    assert_false(reported(world, descriptor, 0));
}

WITH_STORE(a_root_that_disappears_and_returns_is_found_again)
{
    int descriptor = world->store->ops->watch(world->store);
    char bytes[16];

    command(world, "echo 1 > m.zt");
    assert_lists(world, "m.zt ");
    command(world, "mv $PWD ../gone");
    assert_true(reported(world, descriptor, 500));
    assert_lists(world, "");
    assert_int_equal(mkdir(world->root, 0755), 0);
    command(world, "echo 2 > n.zt");
    assert_true(reported(world, descriptor, 2500));
    assert_lists(world, "n.zt ");
    assert_ok(open_path(world, "n.zt", bytes));
    command(world, "rm -r ../gone; echo 3 >> n.zt");
    assert_true(reported(world, descriptor, 500));
}
