/* The local store: what is listed and opened, publication, and leftovers. */
#include "tests.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store_world.h"

#include "store/staging.h"

WITH_STORE(list_shows_models_of_nested_folders_only)
{
    assert_lists(world, "");
    command(world, "mkdir -p a/b .hidden .ztserve 'wide,name' fold.zt; touch x.zt a/y.gguf "
                   "a/b/z.npz x.txt .h.zt .hidden/q.zt .ztserve/s.zt 'wide,name/w.zt' "
                   "\"$(printf 'bad\\001name.zt')\" fold.zt/in.mag; mkfifo fifo.zt");
    assert_lists(world, "a/b/z.npz a/y.gguf fold.zt/in.mag wide,name/w.zt x.zt ");
}

WITH_STORE(links_are_followed_below_the_root_only)
{
    char bytes[16];

    command(world,
            "mkdir real; echo in > real/m.zt; echo out > ../outside/m.zt; ln -s real/m.zt one.zt; "
            "ln -s real two; "
            "ln -s ../outside/m.zt three.zt; ln -s ../outside four; ln -s $PWD/real/m.zt five.zt; "
            "ln -s /etc/hostname six.zt; ln -s nowhere.zt seven.zt; ln -s eight.zt eight.zt; ln -s "
            ".. real/up; "
            "ln -s . real/self; ln -s /proc/self/root nine");
    assert_lists(world, "five.zt one.zt real/m.zt two/m.zt ");
    assert_ok(open_path(world, "five.zt", bytes));
    assert_string_equal(bytes, "in\n");
    assert_ok(open_path(world, "two/m.zt", bytes));
    assert_int_equal(open_path(world, "three.zt", bytes), ZT_NOT_FOUND);
    assert_int_equal(open_path(world, "four/m.zt", bytes), ZT_NOT_FOUND);
    assert_int_equal(open_path(world, "six.zt", bytes), ZT_NOT_FOUND);
    assert_int_equal(open_path(world, "nine/etc/hostname", bytes), ZT_NOT_FOUND);
}

/* Makes openat2 fail as in a kernel, or a sandbox, without it. For good: in a child process. */
static bool forbid_openat2(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static bool opens(const struct world *world, const char *path)
{
    struct zt_source *source = NULL;
    struct file_identity identity;

    if (world->store->ops->open(world->store, path, &source, &identity, NULL) != ZT_OK)
        return false;
    zt_source_close(source);
    return true;
}

/* No descriptor from this number on. */
static void allow_descriptors(int below)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = below >= 0 ? (rlim_t)below : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static int lowest_free_descriptor(void)
{
    const int descriptor = open("/", O_PATH);

    close(descriptor);
    return descriptor;
}

static bool take_all_descriptors(void *context, const char *path,
                                 const struct file_identity *identity)
{
    (void)path;
    (void)identity;
    allow_descriptors(*(const int *)context);
    return true;
}

/* A list without them would say that their models are gone. */
WITH_STORE(a_list_fails_if_a_folder_or_a_link_cannot_be_opened_for_want_of_descriptors)
{
    int least = lowest_free_descriptor();
    struct zt_error error;
    char list[64] = "";

    command(world, "mkdir sub real; touch x.zt sub/y.zt");
    /* While the root is read, whose descriptor is the lowest, the others are used up. */
    assert_int_equal(world->store->ops->list(world->store, take_all_descriptors, &least, &error),
                     ZT_IO);
    allow_descriptors(-1);
    assert_int_equal(error.os_error, EMFILE);
    command(world, "rm -r sub x.zt; touch real/z.zt; ln -s real/z.zt link.zt");
    allow_descriptors(least + 1);
    assert_int_equal(world->store->ops->list(world->store, collect, list, &error), ZT_IO);
    allow_descriptors(-1);
    assert_int_equal(error.os_error, EMFILE);
    assert_lists(world, "link.zt real/z.zt ");
}

WITH_STORE(without_openat2_links_are_not_followed)
{
    pid_t child;
    int status;

    command(world, "mkdir -p a/b; echo in > a/b/m.zt; echo out > ../outside/m.zt; ln -s "
                   "../outside/m.zt three.zt; ln -s ../outside four; ln -s a/b five");
    child = fork();
    if (child == 0) {
        char list[256] = "";

        if (!forbid_openat2())
            _exit(77);
        if (world->store->ops->list(world->store, collect, list, NULL) != ZT_OK ||
            strcmp(list, "a/b/m.zt ") != 0)
            _exit(1);
        _exit(opens(world, "a/b/m.zt") && !opens(world, "three.zt") && !opens(world, "four/m.zt") &&
                      !opens(world, "five/m.zt")
                  ? 0
                  : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

WITH_STORE(open_refuses_paths_that_are_not_clean)
{
    static const char *const paths[] = {"",     "/etc/hostname", "../outside", "a//b",  "./x.zt",
                                        "a/..", "x.zt/",         "fifo.zt",    "dir.zt"};
    char bytes[16];

    command(world, "touch x.zt; mkfifo fifo.zt; mkdir dir.zt");
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        assert_int_equal(open_path(world, paths[i], bytes), ZT_NOT_FOUND);
}

/* The number of times that a file was opened since events began. */
static unsigned openings(int events)
{
    _Alignas(struct inotify_event) char buffer[4096];
    unsigned count = 0;

    for (ssize_t length; (length = read(events, buffer, sizeof(buffer))) > 0;)
        for (ssize_t at = 0; at < length;) {
            const struct inotify_event *event = (const void *)(buffer + at);

            count += (event->mask & IN_OPEN) != 0;
            at += (ssize_t)(sizeof(*event) + event->len);
        }
    return count;
}

/* Of a tape or a watchdog, opening alone has effects; it also wakes who waits at a FIFO. */
WITH_STORE(open_does_not_open_what_is_no_regular_file)
{
    int events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    char path[128];
    char bytes[16];

    command(world, "mkfifo fifo.zt .ztserve-upload-fifo; echo x > x.zt");
    for (size_t i = 0; i < 3; i++) {
        static const char *const names[] = {"fifo.zt", ".ztserve-upload-fifo", "x.zt"};

        snprintf(path, sizeof(path), "%.60s/%.60s", world->root, names[i]);
        assert_true(inotify_add_watch(events, path, IN_OPEN) >= 0);
    }
    assert_int_equal(open_path(world, "fifo.zt", bytes), ZT_NOT_FOUND);
    world->store->ops->close(world->store);
    assert_ok(store_local_open(world->root, 0, &world->store, NULL));
    assert_int_equal(openings(events), 0);
    assert_ok(open_path(world, "x.zt", bytes));
    assert_true(openings(events) > 0);
    close(events);
}

WITH_STORE(walks_through_folders_that_link_to_each_other_end)
{
    char list[1 << 16] = "";

    command(world, "for i in 0 1 2 3 4 5; do mkdir d$i; for j in 0 1 2 3 4 5; do ln -s ../d$j "
                   "d$i/l$j; done; done; touch d0/m.zt");
    assert_ok(world->store->ops->list(world->store, collect, list, NULL));
    assert_non_null(strstr(list, "d0/m.zt "));
}

static struct staged_file *begin(const struct world *world, const char *text)
{
    struct staged_file *upload = NULL;

    assert_ok(staging_create(world->store->staging, strlen(text), &upload, NULL));
    assert_ok(staged_file_write_at(upload, 2, text + 2, strlen(text) - 2, NULL));
    assert_ok(staged_file_write_at(upload, 0, text, 2, NULL));
    return upload;
}

WITH_STORE(published_files_appear_whole)
{
    struct staged_file *upload = begin(world, "content");
    struct zt_source *source = NULL;
    char bytes[16] = "";
    struct stat facts;
    char path[128];

    assert_lists(world, "");
    assert_ok(staged_file_read_back(upload, &source, NULL));
    assert_int_equal(zt_source_size(source), 7);
    assert_ok(zt_source_read_at(source, 0, bytes, 7, NULL));
    assert_string_equal(bytes, "content");
    assert_ok(
        world->store->ops->publish(world->store, upload, "a/b/c.zt", &store_expects_nothing, NULL));
    assert_lists(world, "a/b/c.zt ");
    assert_ok(open_path(world, "a/b/c.zt", bytes));
    assert_string_equal(bytes, "content");
    snprintf(path, sizeof(path), "%s/a/b/c.zt", world->root);
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_mode & 0600, 0600);
    command(world, "test -z \"$(find . -name '.ztserve*')\"");
}

WITH_STORE(publish_replaces_only_if_asked_to)
{
    struct staged_file *upload = begin(world, "second");
    struct zt_error error;
    char bytes[16];

    assert_ok(world->store->ops->publish(world->store, begin(world, "first"), "m.zt",
                                         &store_expects_nothing, NULL));
    assert_int_equal(
        world->store->ops->publish(world->store, upload, "m.zt", &store_expects_nothing, &error),
        ZT_ARGUMENT);
    assert_int_equal(error.status, ZT_ARGUMENT);
    assert_ok(open_path(world, "m.zt", bytes));
    assert_string_equal(bytes, "first");
    assert_ok(
        world->store->ops->publish(world->store, upload, "m.zt", &store_expects_anything, NULL));
    assert_ok(open_path(world, "m.zt", bytes));
    assert_string_equal(bytes, "second");
    command(world, "test -z \"$(find . -name '.ztserve*')\"");
}

WITH_STORE(publish_and_remove_leave_what_is_no_file_of_the_store)
{
    static const char *const paths[] = {"fifo.zt", "out.zt", "dead.zt", "folder.zt", "sub/deep.zt"};
    struct staged_file *upload = begin(world, "text");
    char bytes[16];

    command(world, "mkdir sub d; touch ../outside/o.zt; mkfifo fifo.zt; ln -s ../outside/o.zt "
                   "out.zt; ln -s nothing dead.zt; ln -s d folder.zt; mkfifo sub/deep.zt");
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct zt_error error = {.message = ""};

        assert_int_equal(world->store->ops->publish(world->store, upload, paths[i],
                                                    &store_expects_nothing, NULL),
                         ZT_ARGUMENT);
        assert_int_equal(world->store->ops->publish(world->store, upload, paths[i],
                                                    &store_expects_anything, &error),
                         ZT_ARGUMENT);
        assert_non_null(strstr(error.message, paths[i]));
        assert_int_equal(
            world->store->ops->remove(world->store, paths[i], &store_expects_anything, NULL),
            ZT_NOT_FOUND);
    }
    command(world, "test -p fifo.zt -a -L out.zt -a -L dead.zt -a -L folder.zt -a -p sub/deep.zt; "
                   "touch real; ln -s real in.zt");
    assert_ok(
        world->store->ops->publish(world->store, upload, "in.zt", &store_expects_anything, NULL));
    assert_ok(open_path(world, "in.zt", bytes));
    assert_string_equal(bytes, "text");
}

WITH_STORE(publish_refuses_a_name_in_the_way_of_a_folder)
{
    struct staged_file *upload = begin(world, "text");

    command(world, "mkdir d.zt; touch f; ln -s ../outside out");
    assert_int_equal(
        world->store->ops->publish(world->store, upload, "d.zt", &store_expects_anything, NULL),
        ZT_ARGUMENT);
    assert_int_equal(
        world->store->ops->publish(world->store, upload, "f/m.zt", &store_expects_nothing, NULL),
        ZT_ARGUMENT);
    assert_int_not_equal(
        world->store->ops->publish(world->store, upload, "out/m.zt", &store_expects_nothing, NULL),
        ZT_OK);
    assert_int_not_equal(
        world->store->ops->publish(world->store, upload, "../m.zt", &store_expects_nothing, NULL),
        ZT_OK);
    command(world, "test ! -e ../outside/m.zt && test ! -e ../m.zt && test -z \"$(find . -name "
                   "'.ztserve*')\"");
    staged_file_close(upload);
    staged_file_close(NULL);
}

WITH_STORE(abandoned_uploads_leave_nothing)
{
    staged_file_close(begin(world, "text"));
    command(world, "test -z \"$(ls -A)\"");
}

WITH_STORE(create_refuses_what_the_disk_does_not_hold)
{
    struct staged_file *upload = NULL;
    struct zt_error error;

    assert_int_equal(staging_create(world->store->staging, UINT64_MAX - 1, &upload, &error),
                     ZT_LIMIT);
    assert_int_equal(error.status, ZT_LIMIT);
    world->store->staging->reserve_bytes = UINT64_MAX - 1;
    assert_int_equal(staging_create(world->store->staging, UINT64_MAX, &upload, &error), ZT_LIMIT);
    assert_null(upload);
}

/* A declared length counts against what the reserve leaves, not against all free space. */
WITH_STORE(create_leaves_the_reserve_alone)
{
    static const uint64_t spare_bytes = UINT64_C(64) << 20;
    static const uint64_t declared_bytes = UINT64_C(512) << 20;
    struct staged_file *upload = NULL;
    struct statvfs disk;
    struct zt_error error;
    struct store *store;
    uint64_t free_bytes;

    assert_int_equal(statvfs(world->root, &disk), 0);
    free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (free_bytes < 2 * declared_bytes)
        skip();
    assert_ok(store_local_open(world->root, free_bytes - spare_bytes, &store, NULL));
    assert_int_equal(staging_create(store->staging, declared_bytes, &upload, &error), ZT_LIMIT);
    assert_int_equal(error.status, ZT_LIMIT);
    assert_ok(staging_folder_make(store->staging, "0123456789abcdef0123456789abcdef", NULL));
    assert_int_equal(staging_folder_create(store->staging, "0123456789abcdef0123456789abcdef",
                                           "data", declared_bytes, &upload, &error),
                     ZT_LIMIT);
    assert_null(upload);
    assert_ok(staging_create(store->staging, 1024, &upload, &error));
    staged_file_close(upload);
    store->ops->close(store);
}

/* A chunked body declares no length. */
WITH_STORE(writes_stop_where_the_reserve_begins)
{
    struct staged_file *upload = NULL;
    struct zt_error error;

    assert_ok(staging_create(world->store->staging, UINT64_MAX, &upload, &error));
    world->store->staging->reserve_bytes = UINT64_MAX - 1;
    assert_int_equal(staged_file_write_at(upload, 0, "a", 1, &error), ZT_LIMIT);
    world->store->staging->reserve_bytes = 0;
    assert_ok(staged_file_write_at(upload, 0, "a", 1, &error));
    staged_file_close(upload);
}

#define LENGTH ((size_t)1 << 20)

WITH_STORE(discarded_bytes_are_zeros_and_others_stay)
{
    char *bytes = malloc(LENGTH);
    struct staged_file *upload;
    struct zt_source *source;

    assert_non_null(bytes);
    memset(bytes, 'x', LENGTH);
    assert_ok(staging_create(world->store->staging, LENGTH, &upload, NULL));
    assert_ok(staged_file_write_at(upload, 0, bytes, LENGTH, NULL));
    assert_false(staged_file_discard(upload, 1, UINT64_MAX));
    assert_true(staged_file_discard(upload, 5, 0));
    assert_true(staged_file_discard(upload, 1000, LENGTH - 2000));
    assert_int_equal(staged_file_length(upload), LENGTH);
    assert_ok(staged_file_read_back(upload, &source, NULL));
    assert_ok(zt_source_read_at(source, 0, bytes, LENGTH, NULL));
    for (size_t i = 0; i < LENGTH; i++)
        assert_int_equal(bytes[i], i >= 1000 && i < LENGTH - 1000 ? 0 : 'x');
    staged_file_close(upload);
    free(bytes);
}

WITH_STORE(leftovers_of_dead_processes_are_removed_and_others_kept)
{
    char path[128];
    int held;

    command(world, "touch .ztserve-upload-dead .ztserve-publish-dead .ztserve-upload-live .other; "
                   "mkdir .ztserve");
    snprintf(path, sizeof(path), "%s/.ztserve-upload-live", world->root);
    held = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(held, LOCK_EX), 0);
    world->store->ops->close(world->store);
    assert_ok(store_local_open(world->root, 0, &world->store, NULL));
    command(world, "test \"$(ls -A | tr '\\n' ' ')\" = '.other .ztserve .ztserve-upload-live '");
    close(held);
}

WITH_STORE(removed_files_stay_readable_while_they_are_open)
{
    struct zt_source *source = NULL;
    struct file_identity identity;
    char bytes[16] = "";

    command(world, "printf text > m.zt; mkdir d.zt");
    assert_ok(world->store->ops->open(world->store, "m.zt", &source, &identity, NULL));
    assert_ok(world->store->ops->remove(world->store, "m.zt", &store_expects_anything, NULL));
    assert_int_equal(world->store->ops->remove(world->store, "m.zt", &store_expects_anything, NULL),
                     ZT_NOT_FOUND);
    assert_int_equal(world->store->ops->remove(world->store, "d.zt", &store_expects_anything, NULL),
                     ZT_NOT_FOUND);
    assert_ok(zt_source_read_at(source, 0, bytes, 4, NULL));
    assert_string_equal(bytes, "text");
    zt_source_close(source);
}

TEST(opening_something_that_is_not_a_folder_says_why)
{
    struct store *store = NULL;
    struct zt_error error;

    assert_int_equal(store_local_open("/nonexistent/models", 0, &store, &error), ZT_NOT_FOUND);
    assert_non_null(strstr(error.message, "/nonexistent/models"));
    assert_int_equal(store_local_open("/etc/hostname", 0, &store, &error), ZT_IO);
    assert_null(store);
}

WITH_STORE(times_past_the_range_of_nanoseconds_saturate)
{
    struct stat facts = {.st_mtim = {.tv_sec = 15000000000, .tv_nsec = 5},
                         .st_ctim = {.tv_sec = -15000000000}};

    assert_int_equal(store_identity_from(&facts).modified_ns, INT64_MAX);
    assert_int_equal(store_identity_from(&facts).changed_ns, INT64_MIN);
    facts.st_mtim.tv_sec = -1;
    assert_int_equal(store_identity_from(&facts).modified_ns, -999999995);
}

WITH_STORE(files_with_names_that_are_too_long_are_not_found)
{
    char name[301];
    char bytes[16];

    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(world->store->ops->remove(world->store, name, &store_expects_anything, NULL),
                     ZT_NOT_FOUND);
    assert_int_equal(open_path(world, name, bytes), ZT_NOT_FOUND);
    name[280] = '/';
    assert_int_equal(world->store->ops->remove(world->store, name, &store_expects_anything, NULL),
                     ZT_NOT_FOUND);
}
