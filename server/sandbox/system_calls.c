/* The lists, and the few calls whose arguments matter. libseccomp turns them into a filter for the
 * processor at hand; names that an architecture or the library does not know are left out.
 *
 * What is listed: the calls of this program, of the libraries, and of the C library underneath (of
 * other versions than the one at hand, too: open and openat, fstat and statx). */
#include "sandbox/system_calls.h"

#include <errno.h>
#include <linux/fs.h>
#include <linux/sockios.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *const allowed[] = {
    /* files */
    "read",
    "readv",
    "pread64",
    "preadv",
    "preadv2",
    "write",
    "writev",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "open",
    "openat",
    "openat2",
    "close",
    "close_range",
    "stat",
    "stat64",
    "lstat",
    "lstat64",
    "fstat",
    "fstat64",
    "newfstatat",
    "fstatat64",
    "statx",
    "statfs",
    "statfs64",
    "fstatfs",
    "fstatfs64",
    "access",
    "faccessat",
    "faccessat2",
    "readlink",
    "readlinkat",
    "getdents",
    "getdents64",
    "lseek",
    "_llseek",
    "mkdir",
    "mkdirat",
    "rmdir",
    "unlink",
    "unlinkat",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "ftruncate",
    "ftruncate64",
    "fallocate",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "sync_file_range2",
    "copy_file_range",
    "utimensat",
    "utimensat_time64",
    "sendfile",
    "sendfile64",
    "fadvise64",
    "fadvise64_64",
    "arm_fadvise64_64",
    "readahead",
    "flock",
    "fcntl",
    "fcntl64",
    "dup",
    "dup2",
    "dup3",
    "getcwd",
    "umask",
    "inotify_init1",
    "inotify_add_watch",
    "inotify_rm_watch",
    /* memory */
    "munmap",
    "mremap",
    "madvise",
    "mincore",
    "msync",
    "brk",
    "memfd_create",
    "mlock",
    "mlock2",
    "munlock",
    /* threads, time, signals */
    "futex",
    "futex_time64",
    "futex_wait",
    "futex_wake",
    "futex_waitv",
    "set_robust_list",
    "get_robust_list",
    "rseq",
    "set_tid_address",
    "exit",
    "exit_group",
    "sched_yield",
    "sched_getaffinity",
    "sched_getparam",
    "sched_getscheduler",
    "getcpu",
    "gettid",
    "getpid",
    "getppid",
    "membarrier",
    "arch_prctl",
    "restart_syscall",
    "clock_gettime",
    "clock_gettime64",
    "clock_getres",
    "clock_getres_time64",
    "clock_nanosleep",
    "clock_nanosleep_time64",
    "nanosleep",
    "gettimeofday",
    "time",
    "times",
    "timerfd_create",
    "timerfd_settime",
    "timerfd_settime64",
    "timerfd_gettime",
    "timerfd_gettime64",
    "alarm",
    "setitimer",
    "getitimer",
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "sigreturn",
    "rt_sigpending",
    "rt_sigtimedwait",
    "rt_sigtimedwait_time64",
    "rt_sigsuspend",
    "sigaltstack",
    "signalfd",
    "signalfd4",
    /* events and sockets */
    "epoll_create1",
    "epoll_ctl",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "poll",
    "ppoll",
    "ppoll_time64",
    "select",
    "_newselect",
    "pselect6",
    "pselect6_time64",
    "eventfd2",
    "pipe2",
    "accept",
    "accept4",
    "listen",
    "getsockname",
    "getpeername",
    "setsockopt",
    "getsockopt",
    "recv",
    "recvfrom",
    "recvmsg",
    "recvmmsg",
    "recvmmsg_time64",
    "send",
    "sendto",
    "sendmsg",
    "sendmmsg",
    "shutdown",
    /* facts about the process and the system */
    "getuid",
    "getuid32",
    "geteuid",
    "geteuid32",
    "getgid",
    "getgid32",
    "getegid",
    "getegid32",
    "getresuid",
    "getresgid",
    "uname",
    "sysinfo",
    "getrusage",
    "getrlimit",
    "ugetrlimit",
    "getrandom",
    "riscv_hwprobe",
    "riscv_flush_icache",
};

/* No library tries these to see whether they work. */
static const char *const deadly[] = {
    "execve",
    "execveat",
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "mount",
    "umount2",
    "pivot_root",
    "chroot",
    "move_mount",
    "open_tree",
    "fsopen",
    "setns",
    "unshare",
    "open_by_handle_at",
    "init_module",
    "finit_module",
    "delete_module",
    "kexec_load",
    "kexec_file_load",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "keyctl",
    "add_key",
    "request_key",
    "reboot",
    "swapon",
    "swapoff",
    "acct",
    "clock_settime",
    "settimeofday",
    "ioperm",
    "iopl",
};

/* Only a lack of memory counts: a call that this architecture does not have needs no rule. */
static int add_rule(scmp_filter_ctx filter, uint32_t action, const char *name,
                    const struct scmp_arg_cmp *conditions, unsigned condition_count)
{
    const int number = seccomp_syscall_resolve_name(name);
    int status;

    if (number == __NR_SCMP_ERROR)
        return 0;
    status = seccomp_rule_add_array(filter, action, number, condition_count, conditions);
    return status == -ENOMEM ? status : 0;
}

static int add_list(scmp_filter_ctx filter, uint32_t action, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (add_rule(filter, action, names[i], NULL, 0) != 0)
            return -ENOMEM;
    return 0;
}

/* The flags of clone are its first argument, except on s390. */
#ifdef __s390__
#define CLONE_FLAGS 1
#else
#define CLONE_FLAGS 0
#endif

/* The number of an argument, and what it must be under a mask. */
#define MUST_BE(name, argument, mask, value)          \
    {                                                 \
        name,                                         \
        {                                             \
            argument, SCMP_CMP_MASKED_EQ, mask, value \
        }                                             \
    }
#define WHOLE UINT64_MAX

/* Linux 5.17: glibc names its memory by it. */
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif

struct conditional_rule {
    const char *name;
    struct scmp_arg_cmp condition;
};

static int add_rules(scmp_filter_ctx filter, const struct conditional_rule *rules, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (add_rule(filter, SCMP_ACT_ALLOW, rules[i].name, &rules[i].condition, 1) != 0)
            return -ENOMEM;
    return 0;
}

static int add_conditional(scmp_filter_ctx filter)
{
    const struct conditional_rule rules[] = {
        /* Threads, not processes. Of clone3 the flags cannot be seen: the C library falls back. */
        MUST_BE("clone", CLONE_FLAGS, CLONE_THREAD, CLONE_THREAD),
        MUST_BE("mmap", 2, PROT_EXEC, 0),
        MUST_BE("mmap2", 2, PROT_EXEC, 0),
        MUST_BE("mprotect", 2, PROT_EXEC, 0),
        /* Not TIOCSTI, which types into the terminal. */
        MUST_BE("ioctl", 1, WHOLE, FIONREAD),
        MUST_BE("ioctl", 1, WHOLE, FIONBIO),
        MUST_BE("ioctl", 1, WHOLE, SIOCOUTQ),
        MUST_BE("ioctl", 1, WHOLE, TCGETS),
        MUST_BE("ioctl", 1, WHOLE, FICLONE),
        MUST_BE("ioctl", 1, WHOLE, FIDEDUPERANGE),
        MUST_BE("prctl", 0, WHOLE, PR_SET_NAME),
        MUST_BE("prctl", 0, WHOLE, PR_SET_VMA),
        /* The process itself: abort, limits. */
        MUST_BE("tgkill", 0, WHOLE, (scmp_datum_t)getpid()),
        MUST_BE("prlimit64", 0, WHOLE, 0),
    };
    const struct scmp_arg_cmp no_dumps[] = {{0, SCMP_CMP_EQ, PR_SET_DUMPABLE, 0},
                                            {1, SCMP_CMP_EQ, 0, 0}};

    if (add_rules(filter, rules, sizeof(rules) / sizeof(rules[0])) != 0)
        return -ENOMEM;
    return add_rule(filter, SCMP_ACT_ALLOW, "prctl", no_dumps, 2);
}

/* Of a server that is a client, too. No other kinds of sockets: the C library would like to ask for
 * addresses by netlink and for names at nscd, and does without. */
static int add_connecting(scmp_filter_ctx filter)
{
    const struct conditional_rule rules[] = {
        MUST_BE("socket", 0, WHOLE, AF_INET),
        MUST_BE("socket", 0, WHOLE, AF_INET6),
        /* What libcurl wakes itself with. */
        MUST_BE("socketpair", 0, WHOLE, AF_UNIX),
    };

    if (add_rules(filter, rules, sizeof(rules) / sizeof(rules[0])) != 0)
        return -ENOMEM;
    return add_rule(filter, SCMP_ACT_ALLOW, "connect", NULL, 0);
}

/* All of this is optional, and older versions of library or kernel may lack it. */
static void tune(scmp_filter_ctx filter)
{
    /* A binary search instead of a list: the filter runs with every call. */
    (void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    /* The filter guards against the program's own mistakes; it does not run foreign code, which the
     * mitigation would be for, and which makes every memory access slower. */
    (void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
    (void)seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
}

int system_calls_confine(bool connects)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    int status;

    if (filter == NULL)
        return ENOTSUP;
    tune(filter);
    status = add_list(filter, SCMP_ACT_ALLOW, allowed, sizeof(allowed) / sizeof(allowed[0]));
    if (status == 0)
        status =
            add_list(filter, SCMP_ACT_KILL_PROCESS, deadly, sizeof(deadly) / sizeof(deadly[0]));
    if (status == 0)
        status = add_conditional(filter);
    if (status == 0 && connects)
        status = add_connecting(filter);
    if (status == 0)
        status = seccomp_load(filter);
    seccomp_release(filter);
    return -status;
}
