/* The local store: what is listed and opened, publication, leftovers, and noticing changes. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
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

#include "store/store_local.h"

struct world {
    char root[64];
    struct store *store;
};

static void command(const struct world *world, const char *format)
{
    char text[1024];

    snprintf(text, sizeof(text), "cd %s && { %s; }", world->root, format);
    assert_int_equal(system(text), 0);
}

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof(*world));

    strcpy(world->root, "/tmp/zt-test-store-XXXXXX");
    assert_non_null(mkdtemp(world->root));
    command(world, "mkdir root outside");
    strcat(world->root, "/root");
    assert_int_equal(store_local_open(world->root, 0, &world->store, NULL), ZT_OK);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;

    world->store->ops->close(world->store);
    strrchr(world->root, '/')[0] = '\0';
    command(world, "chmod -R u+rwx . && rm -r root outside");
    rmdir(world->root);
    free(world);
    return 0;
}

static bool collect(void *context, const char *path, const struct file_identity *identity)
{
    char *list = context;

    assert_true(identity->inode != 0);
    strcat(list, path);
    strcat(list, " ");
    return true;
}

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Asserts the sorted list of paths, each followed by a space. */
static void assert_lists(const struct world *world, const char *expected)
{
    char list[4096] = "";
    char sorted[4096] = "";
    char *words[64];
    size_t count = 0;

    assert_int_equal(world->store->ops->list(world->store, collect, list, NULL), ZT_OK);
    for (char *word = strtok(list, " "); word != NULL; word = strtok(NULL, " "))
        words[count++] = word;
    qsort(words, count, sizeof(words[0]), compare_words);
    for (size_t i = 0; i < count; i++)
        strcat(strcat(sorted, words[i]), " ");
    assert_string_equal(sorted, expected);
}

static enum zt_status open_path(const struct world *world, const char *path, char out_bytes[16])
{
    struct zt_source *source = NULL;
    struct file_identity identity;
    struct zt_error error;
    enum zt_status status = world->store->ops->open(world->store, path, &source, &identity, &error);

    if (status != ZT_OK) {
        assert_int_equal(error.status, status);
        assert_null(strstr(error.message, world->root));
        return status;
    }
    memset(out_bytes, 0, 16);
    assert_true(zt_source_size(source) < 16);
    assert_int_equal(zt_source_read_at(source, 0, out_bytes, (size_t)zt_source_size(source), NULL),
                     ZT_OK);
    assert_int_equal(identity.size_bytes, zt_source_size(source));
    zt_source_close(source);
    return ZT_OK;
}

static void list_shows_models_of_nested_folders_only(void **state)
{
    struct world *world = *state;

    assert_lists(world, "");
    command(world, "mkdir -p a/b .hidden .ztserve 'bad name' fold.zt; touch x.zt a/y.gguf "
                   "a/b/z.npz x.txt .h.zt .hidden/q.zt "
                   ".ztserve/s.zt 'bad name/w.zt' fold.zt/in.mag; mkfifo fifo.zt");
    assert_lists(world, "a/b/z.npz a/y.gguf fold.zt/in.mag x.zt ");
}

static void links_are_followed_below_the_root_only(void **state)
{
    struct world *world = *state;
    char bytes[16];

    command(world,
            "mkdir real; echo in > real/m.zt; echo out > ../outside/m.zt; ln -s real/m.zt one.zt; "
            "ln -s real two; "
            "ln -s ../outside/m.zt three.zt; ln -s ../outside four; ln -s $PWD/real/m.zt five.zt; "
            "ln -s /etc/hostname six.zt; ln -s nowhere.zt seven.zt; ln -s eight.zt eight.zt; ln -s "
            ".. real/up; "
            "ln -s . real/self; ln -s /proc/self/root nine");
    assert_lists(world, "five.zt one.zt real/m.zt two/m.zt ");
    assert_int_equal(open_path(world, "five.zt", bytes), ZT_OK);
    assert_string_equal(bytes, "in\n");
    assert_int_equal(open_path(world, "two/m.zt", bytes), ZT_OK);
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
static void a_list_fails_if_a_folder_or_a_link_cannot_be_opened_for_want_of_descriptors(
    void **state)
{
    struct world *world = *state;
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

static void without_openat2_links_are_not_followed(void **state)
{
    struct world *world = *state;
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

static void open_refuses_paths_that_are_not_clean(void **state)
{
    struct world *world = *state;
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
static void open_does_not_open_what_is_no_regular_file(void **state)
{
    struct world *world = *state;
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
    assert_int_equal(store_local_open(world->root, 0, &world->store, NULL), ZT_OK);
    assert_int_equal(openings(events), 0);
    assert_int_equal(open_path(world, "x.zt", bytes), ZT_OK);
    assert_true(openings(events) > 0);
    close(events);
}

static void walks_through_folders_that_link_to_each_other_end(void **state)
{
    struct world *world = *state;
    char list[1 << 16] = "";

    command(world, "for i in 0 1 2 3 4 5; do mkdir d$i; for j in 0 1 2 3 4 5; do ln -s ../d$j "
                   "d$i/l$j; done; done; touch d0/m.zt");
    assert_int_equal(world->store->ops->list(world->store, collect, list, NULL), ZT_OK);
    assert_non_null(strstr(list, "d0/m.zt "));
}

static struct stored_upload *begin(const struct world *world, const char *text)
{
    struct stored_upload *upload = NULL;

    assert_int_equal(world->store->ops->create(world->store, strlen(text), &upload, NULL), ZT_OK);
    assert_int_equal(world->store->ops->write_at(upload, 2, text + 2, strlen(text) - 2, NULL),
                     ZT_OK);
    assert_int_equal(world->store->ops->write_at(upload, 0, text, 2, NULL), ZT_OK);
    return upload;
}

static void published_files_appear_whole(void **state)
{
    struct world *world = *state;
    struct stored_upload *upload = begin(world, "content");
    struct zt_source *source = NULL;
    char bytes[16] = "";
    struct stat facts;
    char path[128];

    assert_lists(world, "");
    assert_int_equal(world->store->ops->read_back(upload, &source, NULL), ZT_OK);
    assert_int_equal(zt_source_size(source), 7);
    assert_int_equal(zt_source_read_at(source, 0, bytes, 7, NULL), ZT_OK);
    assert_string_equal(bytes, "content");
    assert_int_equal(world->store->ops->publish(upload, "a/b/c.zt", &store_expects_nothing, NULL),
                     ZT_OK);
    assert_lists(world, "a/b/c.zt ");
    assert_int_equal(open_path(world, "a/b/c.zt", bytes), ZT_OK);
    assert_string_equal(bytes, "content");
    snprintf(path, sizeof(path), "%s/a/b/c.zt", world->root);
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_mode & 0600, 0600);
    command(world, "test -z \"$(find . -name '.ztserve*')\"");
}

static void publish_replaces_only_if_asked_to(void **state)
{
    struct world *world = *state;
    struct stored_upload *upload = begin(world, "second");
    struct zt_error error;
    char bytes[16];

    assert_int_equal(
        world->store->ops->publish(begin(world, "first"), "m.zt", &store_expects_nothing, NULL),
        ZT_OK);
    assert_int_equal(world->store->ops->publish(upload, "m.zt", &store_expects_nothing, &error),
                     ZT_ARGUMENT);
    assert_int_equal(error.status, ZT_ARGUMENT);
    assert_int_equal(open_path(world, "m.zt", bytes), ZT_OK);
    assert_string_equal(bytes, "first");
    assert_int_equal(world->store->ops->publish(upload, "m.zt", &store_expects_anything, NULL),
                     ZT_OK);
    assert_int_equal(open_path(world, "m.zt", bytes), ZT_OK);
    assert_string_equal(bytes, "second");
    command(world, "test -z \"$(find . -name '.ztserve*')\"");
}

static void publish_and_remove_leave_what_is_no_file_of_the_store(void **state)
{
    static const char *const paths[] = {"fifo.zt", "out.zt", "dead.zt", "folder.zt", "sub/deep.zt"};
    struct world *world = *state;
    struct stored_upload *upload = begin(world, "text");
    char bytes[16];

    command(world, "mkdir sub d; touch ../outside/o.zt; mkfifo fifo.zt; ln -s ../outside/o.zt "
                   "out.zt; ln -s nothing dead.zt; ln -s d folder.zt; mkfifo sub/deep.zt");
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct zt_error error = {.message = ""};

        assert_int_equal(world->store->ops->publish(upload, paths[i], &store_expects_nothing, NULL),
                         ZT_ARGUMENT);
        assert_int_equal(
            world->store->ops->publish(upload, paths[i], &store_expects_anything, &error),
            ZT_ARGUMENT);
        assert_non_null(strstr(error.message, paths[i]));
        assert_int_equal(
            world->store->ops->remove(world->store, paths[i], &store_expects_anything, NULL),
            ZT_NOT_FOUND);
    }
    command(world, "test -p fifo.zt -a -L out.zt -a -L dead.zt -a -L folder.zt -a -p sub/deep.zt; "
                   "touch real; ln -s real in.zt");
    assert_int_equal(world->store->ops->publish(upload, "in.zt", &store_expects_anything, NULL),
                     ZT_OK);
    assert_int_equal(open_path(world, "in.zt", bytes), ZT_OK);
    assert_string_equal(bytes, "text");
}

static void publish_refuses_a_name_in_the_way_of_a_folder(void **state)
{
    struct world *world = *state;
    struct stored_upload *upload = begin(world, "text");

    command(world, "mkdir d.zt; touch f; ln -s ../outside out");
    assert_int_equal(world->store->ops->publish(upload, "d.zt", &store_expects_anything, NULL),
                     ZT_ARGUMENT);
    assert_int_equal(world->store->ops->publish(upload, "f/m.zt", &store_expects_nothing, NULL),
                     ZT_ARGUMENT);
    assert_int_not_equal(
        world->store->ops->publish(upload, "out/m.zt", &store_expects_nothing, NULL), ZT_OK);
    assert_int_not_equal(
        world->store->ops->publish(upload, "../m.zt", &store_expects_nothing, NULL), ZT_OK);
    command(world, "test ! -e ../outside/m.zt && test ! -e ../m.zt && test -z \"$(find . -name "
                   "'.ztserve*')\"");
    world->store->ops->abandon(upload);
    world->store->ops->abandon(NULL);
}

static void abandoned_uploads_leave_nothing(void **state)
{
    struct world *world = *state;

    world->store->ops->abandon(begin(world, "text"));
    command(world, "test -z \"$(ls -A)\"");
}

static void create_refuses_what_the_disk_does_not_hold(void **state)
{
    struct world *world = *state;
    struct local_store *local = (struct local_store *)world->store;
    struct stored_upload *upload = NULL;
    struct zt_error error;

    assert_int_equal(world->store->ops->create(world->store, UINT64_MAX - 1, &upload, &error),
                     ZT_LIMIT);
    assert_int_equal(error.status, ZT_LIMIT);
    local->reserve_bytes = UINT64_MAX - 1;
    assert_int_equal(world->store->ops->create(world->store, UINT64_MAX, &upload, &error),
                     ZT_LIMIT);
    assert_null(upload);
}

/* A declared length counts against what the reserve leaves, not against all free space. */
static void create_leaves_the_reserve_alone(void **state)
{
    static const uint64_t spare_bytes = UINT64_C(64) << 20;
    static const uint64_t declared_bytes = UINT64_C(512) << 20;
    const struct world *world = *state;
    struct stored_upload *upload = NULL;
    struct statvfs disk;
    struct zt_error error;
    struct store *store;
    uint64_t free_bytes;

    assert_int_equal(statvfs(world->root, &disk), 0);
    free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (free_bytes < 2 * declared_bytes)
        skip();
    assert_int_equal(store_local_open(world->root, free_bytes - spare_bytes, &store, NULL), ZT_OK);
    assert_int_equal(store->ops->create(store, declared_bytes, &upload, &error), ZT_LIMIT);
    assert_int_equal(error.status, ZT_LIMIT);
    assert_int_equal(store->ops->keep(store, "0123456789abcdef0123456789abcdef", NULL), ZT_OK);
    assert_int_equal(store->ops->kept_create(store, "0123456789abcdef0123456789abcdef", "data",
                                             declared_bytes, &upload, &error),
                     ZT_LIMIT);
    assert_null(upload);
    assert_int_equal(store->ops->create(store, 1024, &upload, &error), ZT_OK);
    store->ops->abandon(upload);
    store->ops->close(store);
}

/* A chunked body declares no length. */
static void writes_stop_where_the_reserve_begins(void **state)
{
    const struct world *world = *state;
    struct local_store *local = (struct local_store *)world->store;
    const struct store_ops *ops = world->store->ops;
    struct stored_upload *upload = NULL;
    struct zt_error error;

    assert_int_equal(ops->create(world->store, UINT64_MAX, &upload, &error), ZT_OK);
    local->reserve_bytes = UINT64_MAX - 1;
    assert_int_equal(ops->write_at(upload, 0, "a", 1, &error), ZT_OK);
    atomic_store(&local_upload_of(upload)->next_look, 2);
    assert_int_equal(ops->write_at(upload, 1, "b", 1, &error), ZT_LIMIT);
    ops->abandon(upload);
}

#define LENGTH ((size_t)1 << 20)

static void discarded_bytes_are_zeros_and_others_stay(void **state)
{
    const struct world *world = *state;
    const struct store_ops *ops = world->store->ops;
    char *bytes = malloc(LENGTH);
    struct stored_upload *upload;
    struct zt_source *source;

    assert_non_null(bytes);
    memset(bytes, 'x', LENGTH);
    assert_int_equal(ops->create(world->store, LENGTH, &upload, NULL), ZT_OK);
    assert_int_equal(ops->write_at(upload, 0, bytes, LENGTH, NULL), ZT_OK);
    assert_false(ops->discard(upload, 1, UINT64_MAX));
    assert_true(ops->discard(upload, 5, 0));
    assert_true(ops->discard(upload, 1000, LENGTH - 2000));
    assert_int_equal(ops->length(upload), LENGTH);
    assert_int_equal(ops->read_back(upload, &source, NULL), ZT_OK);
    assert_int_equal(zt_source_read_at(source, 0, bytes, LENGTH, NULL), ZT_OK);
    for (size_t i = 0; i < LENGTH; i++)
        assert_int_equal(bytes[i], i >= 1000 && i < LENGTH - 1000 ? 0 : 'x');
    ops->abandon(upload);
    free(bytes);
}

static void leftovers_of_dead_processes_are_removed_and_others_kept(void **state)
{
    struct world *world = *state;
    char path[128];
    int held;

    command(world, "touch .ztserve-upload-dead .ztserve-publish-dead .ztserve-upload-live .other; "
                   "mkdir .ztserve");
    snprintf(path, sizeof(path), "%s/.ztserve-upload-live", world->root);
    held = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(held, LOCK_EX), 0);
    world->store->ops->close(world->store);
    assert_int_equal(store_local_open(world->root, 0, &world->store, NULL), ZT_OK);
    command(world, "test \"$(ls -A | tr '\\n' ' ')\" = '.other .ztserve .ztserve-upload-live '");
    close(held);
}

static void removed_files_stay_readable_while_they_are_open(void **state)
{
    struct world *world = *state;
    struct zt_source *source = NULL;
    struct file_identity identity;
    char bytes[16] = "";

    command(world, "printf text > m.zt; mkdir d.zt");
    assert_int_equal(world->store->ops->open(world->store, "m.zt", &source, &identity, NULL),
                     ZT_OK);
    assert_int_equal(world->store->ops->remove(world->store, "m.zt", &store_expects_anything, NULL),
                     ZT_OK);
    assert_int_equal(world->store->ops->remove(world->store, "m.zt", &store_expects_anything, NULL),
                     ZT_NOT_FOUND);
    assert_int_equal(world->store->ops->remove(world->store, "d.zt", &store_expects_anything, NULL),
                     ZT_NOT_FOUND);
    assert_int_equal(zt_source_read_at(source, 0, bytes, 4, NULL), ZT_OK);
    assert_string_equal(bytes, "text");
    zt_source_close(source);
}

static void opening_something_that_is_not_a_folder_says_why(void **state)
{
    struct store *store = NULL;
    struct zt_error error;

    (void)state;
    assert_int_equal(store_local_open("/nonexistent/models", 0, &store, &error), ZT_NOT_FOUND);
    assert_non_null(strstr(error.message, "/nonexistent/models"));
    assert_int_equal(store_local_open("/etc/hostname", 0, &store, &error), ZT_IO);
    assert_null(store);
}

/* Whether a change is reported within some time. */
static bool told(const struct world *world, int descriptor, int timeout_ms)
{
    struct pollfd wait = {.fd = descriptor, .events = POLLIN};

    while (poll(&wait, 1, timeout_ms) == 1)
        if (world->store->ops->changed(world->store))
            return true;
    return false;
}

static void changes_are_reported_at_once(void **state)
{
    struct world *world = *state;
    int descriptor = world->store->ops->watch(world->store);

    assert_true(descriptor >= 0);
    assert_true(told(world, descriptor, 500));
    assert_lists(world, "");
    assert_false(told(world, descriptor, 100));
    command(world, "mkdir new");
    assert_true(told(world, descriptor, 500));
    command(world, "echo x > new/m.zt");
    assert_lists(world, "new/m.zt ");
    command(world, "echo y >> new/m.zt");
    assert_true(told(world, descriptor, 500));
    command(world, "mv new/m.zt new/n.zt");
    assert_true(told(world, descriptor, 500));
    command(world, "rm -r new");
    assert_true(told(world, descriptor, 500));
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
        world->store->ops->look(world->store, collect_look, list, &whole, NULL);
    list[0] = '\0';
    command(world, text);
    assert_true(world->store->ops->changed(world->store));
    assert_int_equal(world->store->ops->look(world->store, collect_look, list, &whole, NULL),
                     ZT_OK);
    if (expected == NULL)
        assert_true(whole);
    else if (whole)
        fail_msg("%s needs a list of everything", text);
    else
        assert_string_equal(list, expected);
}

static void a_look_visits_only_what_changed(void **state)
{
    struct world *world = *state;

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

static void folders_found_by_a_look_are_watched(void **state)
{
    struct world *world = *state;
    char list[256] = "";
    bool whole = false;

    assert_true(world->store->ops->watch(world->store) >= 0);
    assert_look(world, "mkdir -p ../outside/d/e; mv ../outside/d d", "");
    command(world, "echo 1 > d/e/m.zt");
    assert_true(world->store->ops->changed(world->store));
    world->store->ops->look(world->store, collect_look, list, &whole, NULL);
    assert_false(whole);
    assert_non_null(strstr(list, "d/e/m.zt "));
}

static void what_a_look_cannot_know_needs_a_list(void **state)
{
    struct world *world = *state;

    command(world, "mkdir -p a/b c; touch a/b/m.zt c/m.zt");
    assert_true(world->store->ops->watch(world->store) >= 0);
    assert_look(world, "mv a d", NULL);
    assert_look(world, "rm -r c", NULL);
    assert_look(world, "ln d/b/m.zt n.zt", NULL);
    assert_look(world, "touch weights.h5", NULL);
    assert_look(world, "touch 'bad name.zt'", NULL);
    assert_look(world, "mkfifo f.zt", NULL);
    assert_look(world, "chmod 700 d", NULL);
    assert_look(world, "ln -s d/b/m.zt link.zt", NULL);
    /* Whatever changes in a tree with links. */
    assert_look(world, "echo 1 > plain.zt", NULL);
}

static void changes_of_hidden_files_are_not_reported(void **state)
{
    struct world *world = *state;
    int descriptor = world->store->ops->watch(world->store);

    command(world, "mkdir -p .ztserve/verified");
    assert_lists(world, "");
    told(world, descriptor, 0);
    command(
        world,
        "touch .x .ztserve/verified/abc; rm .x; echo 1 > note.txt.part; rm .ztserve/verified/abc");
    /* Creation and removal of another name may be a link to a folder: one telling, no more. */
    told(world, descriptor, 50);
    command(world,
            "touch .ztserve/y; mv .ztserve/y .ztserve/z; rm .ztserve/z; touch .q; mv .q .r; rm .r");
    assert_false(told(world, descriptor, 200));
}

static void the_timer_asks_for_a_scan_within_three_seconds(void **state)
{
    struct world *world = *state;
    int descriptor = world->store->ops->watch(world->store);

    assert_lists(world, "");
    told(world, descriptor, 0);
    assert_true(told(world, descriptor, 2500));
    /* Reported once, until the next scan sets the timer again. */
    assert_false(told(world, descriptor, 0));
}

static void a_root_that_disappears_and_returns_is_found_again(void **state)
{
    struct world *world = *state;
    int descriptor = world->store->ops->watch(world->store);
    char bytes[16];

    command(world, "echo 1 > m.zt");
    assert_lists(world, "m.zt ");
    command(world, "mv $PWD ../gone");
    assert_true(told(world, descriptor, 500));
    assert_lists(world, "");
    assert_int_equal(mkdir(world->root, 0755), 0);
    command(world, "echo 2 > n.zt");
    assert_true(told(world, descriptor, 2500));
    assert_lists(world, "n.zt ");
    assert_int_equal(open_path(world, "n.zt", bytes), ZT_OK);
    command(world, "rm -r ../gone; echo 3 >> n.zt");
    assert_true(told(world, descriptor, 500));
}

static void times_past_the_range_of_nanoseconds_saturate(void **state)
{
    struct stat facts = {.st_mtim = {.tv_sec = 15000000000, .tv_nsec = 5},
                         .st_ctim = {.tv_sec = -15000000000}};

    (void)state;
    assert_int_equal(store_identity_from(&facts).modified_ns, INT64_MAX);
    assert_int_equal(store_identity_from(&facts).changed_ns, INT64_MIN);
    facts.st_mtim.tv_sec = -1;
    assert_int_equal(store_identity_from(&facts).modified_ns, -999999995);
}

static void files_with_names_that_are_too_long_are_not_found(void **state)
{
    struct world *world = *state;
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(list_shows_models_of_nested_folders_only),
        TEST(links_are_followed_below_the_root_only),
        TEST(a_list_fails_if_a_folder_or_a_link_cannot_be_opened_for_want_of_descriptors),
        TEST(without_openat2_links_are_not_followed),
        TEST(open_refuses_paths_that_are_not_clean),
        TEST(open_does_not_open_what_is_no_regular_file),
        TEST(walks_through_folders_that_link_to_each_other_end),
        TEST(published_files_appear_whole),
        TEST(publish_replaces_only_if_asked_to),
        TEST(publish_and_remove_leave_what_is_no_file_of_the_store),
        TEST(publish_refuses_a_name_in_the_way_of_a_folder),
        TEST(abandoned_uploads_leave_nothing),
        TEST(create_refuses_what_the_disk_does_not_hold),
        TEST(create_leaves_the_reserve_alone),
        TEST(writes_stop_where_the_reserve_begins),
        TEST(discarded_bytes_are_zeros_and_others_stay),
        TEST(leftovers_of_dead_processes_are_removed_and_others_kept),
        TEST(removed_files_stay_readable_while_they_are_open),
        cmocka_unit_test(opening_something_that_is_not_a_folder_says_why),
        TEST(times_past_the_range_of_nanoseconds_saturate),
        TEST(files_with_names_that_are_too_long_are_not_found),
        TEST(changes_are_reported_at_once),
        TEST(a_look_visits_only_what_changed),
        TEST(folders_found_by_a_look_are_watched),
        TEST(what_a_look_cannot_know_needs_a_list),
        TEST(changes_of_hidden_files_are_not_reported),
        TEST(the_timer_asks_for_a_scan_within_three_seconds),
        TEST(a_root_that_disappears_and_returns_is_found_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
