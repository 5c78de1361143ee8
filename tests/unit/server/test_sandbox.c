/* What a confined process can still do. Each test confines a child, since there is no way back; the
 * child's exit status says at which of its steps it was surprised (0: at none). */
#include "tests.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "remote/remote.h"
#include "sandbox/sandbox.h"

#define PATH_SIZE 128

static char base[PATH_SIZE];
/* Whether children can make connections. */
static bool connects;

static const char *in_base(const char *name)
{
    static char paths[4][PATH_SIZE];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, PATH_SIZE, "%.60s/%.60s", base, name);
    return path;
}

static void make_file(const char *name)
{
    int file = open(in_base(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(file >= 0);
    assert_int_equal(write(file, "x", 1), 1);
    close(file);
}

/* base: read/file, write/a/, write/b/, unnamed/, files/file, outside/file */
static int make_folders(void **state)
{
    static const char *const folders[] = {"read",    "write", "write/a", "write/b",
                                          "unnamed", "files", "outside"};

    (void)state;
    strcpy(base, "/tmp/zt-sandbox-XXXXXX");
    if (mkdtemp(base) == NULL)
        return -1;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        assert_int_equal(mkdir(in_base(folders[i]), 0700), 0);
    make_file("read/file");
    make_file("files/file");
    make_file("outside/file");
    return 0;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *place)
{
    (void)info;
    (void)type;
    (void)place;
    return remove(path);
}

static int remove_folders(void **state)
{
    (void)state;
    return nftw(base, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void confine(struct sandbox_report *report)
{
    const struct sandbox_place places[] = {
        {in_base("read"), SANDBOX_READ, true},       {in_base("write"), SANDBOX_WRITE, true},
        {in_base("unnamed"), SANDBOX_UNNAMED, true}, {in_base("files"), SANDBOX_FILES, false},
        {"/nonexistent/place", SANDBOX_WRITE, true},
    };

    sandbox_enter(places, sizeof(places) / sizeof(places[0]), connects, report);
}

#define CANNOT_CONFINE 255

/* Runs the steps in a confined child, and returns how it ended (waitpid), with the status
 * CANNOT_CONFINE if this kernel or build cannot. */
static int run_in_child(int (*steps)(void))
{
    struct sandbox_report report;
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        confine(&report);
        if (!report.complete || strstr(report.text, "sanitizer") != NULL)
            _exit(CANNOT_CONFINE);
        _exit(steps());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void skip_if_unconfined(int status)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_CONFINE)
        skip();
}

static int run_confined(int (*steps)(void))
{
    const int status = run_in_child(steps);

    skip_if_unconfined(status);
    return status;
}

static void assert_no_surprise(int (*steps)(void))
{
    int status = run_confined(steps);

    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* A test whose body is the steps of a confined child. */
#define CONFINED(name)                    \
    static int name##_steps(void);        \
    TEST(name)                            \
    {                                     \
        assert_no_surprise(name##_steps); \
    }                                     \
    static int name##_steps(void)

static int opened(const char *path, int flags)
{
    return open(path, flags | O_CLOEXEC, 0600);
}

static bool refused(int result, int os_error)
{
    return result < 0 && errno == os_error;
}

/* --- files --- */

CONFINED(place_that_is_read_cannot_be_changed)
{
    if (opened(in_base("read/file"), O_RDONLY) < 0)
        return 1;
    if (opened(in_base("read"), O_RDONLY | O_DIRECTORY) < 0)
        return 2;
    if (!refused(opened(in_base("read/file"), O_WRONLY), EACCES))
        return 3;
    if (!refused(opened(in_base("read/new"), O_WRONLY | O_CREAT), EACCES))
        return 4;
    if (!refused(unlink(in_base("read/file")), EACCES))
        return 5;
    return 0;
}

CONFINED(place_of_files_cannot_be_listed)
{
    if (opened(in_base("files/file"), O_RDONLY) < 0)
        return 1;
    return refused(opened(in_base("files"), O_RDONLY | O_DIRECTORY), EACCES) ? 0 : 2;
}

CONFINED(nothing_else_can_be_opened)
{
    if (!refused(opened(in_base("outside/file"), O_RDONLY), EACCES))
        return 1;
    if (!refused(opened("/etc/passwd", O_RDONLY), EACCES))
        return 2;
    if (!refused(opened(in_base("new"), O_WRONLY | O_CREAT), EACCES))
        return 3;
    return refused(opened(in_base("read/../outside/file"), O_RDONLY), EACCES) ? 0 : 4;
}

/* As uploads are published. */
CONFINED(place_that_is_written_takes_uploads)
{
    char link[64];
    int unnamed = opened(in_base("write/a"), O_RDWR | O_TMPFILE);

    if (unnamed < 0 || ftruncate(unnamed, 100) != 0)
        return 1;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", unnamed);
    if (linkat(AT_FDCWD, link, AT_FDCWD, in_base("write/b/m"), AT_SYMLINK_FOLLOW) != 0)
        return 2;
    if (rename(in_base("write/b/m"), in_base("write/a/m")) != 0)
        return 3;
    if (mkdir(in_base("write/c"), 0700) != 0 || rmdir(in_base("write/c")) != 0)
        return 4;
    if (unlink(in_base("write/a/m")) != 0)
        return 5;
    if (!refused(symlink("/etc", in_base("write/link")), ENOSYS))
        return 6;
    return refused(mkfifo(in_base("write/fifo"), 0600), ENOSYS) ? 0 : 7;
}

CONFINED(nothing_moves_between_places)
{
    if (!refused(rename(in_base("write/a"), in_base("read/a")), EACCES) && errno != EXDEV)
        return 1;
    return link(in_base("read/file"), in_base("write/file")) != 0 ? 0 : 2;
}

CONFINED(place_of_unnamed_files_takes_no_others)
{
    int file = opened(in_base("unnamed"), O_RDWR | O_TMPFILE | O_EXCL);

    if (file < 0 || write(file, "x", 1) != 1)
        return 1;
    return refused(opened(in_base("unnamed/new"), O_WRONLY | O_CREAT), EACCES) ? 0 : 2;
}

/* --- calls --- */

static void *probe_in_thread(void *context)
{
    *(int *)context = opened(in_base("outside/file"), O_RDONLY);
    return NULL;
}

CONFINED(threads_start_and_are_confined)
{
    pthread_t thread;
    int file = 0;

    if (pthread_create(&thread, NULL, probe_in_thread, &file) != 0)
        return 1;
    pthread_join(thread, NULL);
    return file < 0 ? 0 : 2;
}

CONFINED(calls_of_no_server_are_refused)
{
    if (fork() >= 0)
        return 1;
    if (!refused(socket(AF_INET, SOCK_STREAM, 0), ENOSYS))
        return 2;
    if (!refused(socket(AF_UNIX, SOCK_DGRAM, 0), ENOSYS))
        return 3;
    if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
        return 4;
    if (syscall(SYS_keyctl + 100000) != -1 || errno != ENOSYS)
        return 5;
    return 0;
}

/* Calls that are allowed for some arguments only. */
CONFINED(calls_are_allowed_for_some_arguments_only)
{
    int ends[2];
    int waiting = 0;

    if (pipe2(ends, O_CLOEXEC) != 0 || ioctl(ends[0], FIONREAD, &waiting) != 0)
        return 1;
    if (!refused(ioctl(ends[0], TIOCSTI, "x"), ENOSYS))
        return 2;
    if (!refused(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), ENOSYS))
        return 3;
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        return 4;
    if (!refused((int)syscall(SYS_tgkill, getppid(), getppid(), SIGURG), ENOSYS))
        return 5;
    return raise(SIGURG) == 0 ? 0 : 6;
}

static int run_program_steps(void)
{
    char name[] = "true";
    char *const arguments[] = {name, NULL};

    execv("/bin/true", arguments);
    return 1;
}

TEST(running_a_program_ends_the_process)
{
    int status = run_confined(run_program_steps);

    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSYS);
}

/* --- a server that is a client --- */

static char origin[32];

static void *answer_once(void *context)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    int connection = accept(*(int *)context, NULL, NULL);
    char request[4096];

    if (connection < 0)
        return NULL;
    assert_true(recv(connection, request, sizeof(request), 0) > 0);
    assert_int_equal(send(connection, answer, sizeof(answer) - 1, 0), sizeof(answer) - 1);
    close(connection);
    return NULL;
}

static int client_steps(void)
{
    struct remote_options options = {.connections = 1};
    struct remote_exchange exchange;
    struct remote *remote;

    if (remote_start(&options, &remote, NULL) != ZT_OK)
        return 1;
    remote_exchange_init(&exchange);
    exchange.method = "GET";
    exchange.origin = origin;
    exchange.path = "/";
    exchange.body_most = 100;
    exchange.tries = 1;
    if (remote_run(remote, &exchange) != ZT_OK || strcmp(exchange.answer, "ok") != 0)
        return 2;
    remote_exchange_free(&exchange);
    remote_stop(remote);
    if (!refused(socket(AF_UNIX, SOCK_DGRAM, 0), ENOSYS))
        return 3;
    if (!refused(socket(AF_NETLINK, SOCK_RAW, 0), ENOSYS))
        return 4;
    return 0;
}

TEST(client_makes_connections_after_it_was_confined)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pthread_t thread;
    int status;

    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    snprintf(origin, sizeof(origin), "http://127.0.0.1:%u", ntohs(address.sin_port));
    assert_ok(remote_prepare(NULL));
    assert_int_equal(pthread_create(&thread, NULL, answer_once, &listener), 0);
    connects = true;
    status = run_in_child(client_steps);
    connects = false;
    shutdown(listener, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(listener);
    skip_if_unconfined(status);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* --- the report --- */

/* Makes one call fail as in a kernel, or a container, without it. */
static bool forbid(unsigned number, unsigned os_error)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | os_error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* The report of a child; forbidden: a call that fails in it, or 0. */
static void report_of_child(unsigned forbidden, struct sandbox_report *out_report)
{
    int ends[2];
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (forbidden != 0 && !forbid(forbidden, EPERM))
            _exit(1);
        confine(out_report);
        _exit(write(ends[1], out_report, sizeof(*out_report)) == (ssize_t)sizeof(*out_report) ? 0
                                                                                              : 1);
    }
    close(ends[1]);
    for (size_t at = 0; at < sizeof(*out_report);) {
        ssize_t got = read(ends[0], (char *)out_report + at, sizeof(*out_report) - at);

        assert_true(got > 0);
        at += (size_t)got;
    }
    close(ends[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    if (strstr(out_report->text, "sanitizer") != NULL)
        skip();
}

TEST(report_names_what_is_in_force_and_the_named_places)
{
    struct sandbox_report report = {.text = ""};

    report_of_child(0, &report);
    assert_non_null(strstr(report.text, "no new privileges"));
    if (!report.complete)
        skip();
    assert_non_null(strstr(report.text, in_base("write")));
    assert_null(strstr(report.text, in_base("files")));
    assert_non_null(strstr(report.text, "system calls filtered"));
}

TEST(report_names_what_the_kernel_lacks_and_the_rest_is_in_force)
{
    struct sandbox_report report = {.text = ""};

    report_of_child(SYS_landlock_create_ruleset, &report);
    assert_false(report.complete);
    assert_string_equal(report.text, "no new privileges, no Landlock (Operation not permitted), "
                                     "system calls filtered");
}

AROUND_ALL_TESTS(make_folders, remove_folders)
