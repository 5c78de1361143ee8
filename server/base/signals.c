/* Receives signals through a signalfd, so that no handler interrupts the program, except as the
 * last resort if it hangs at the end. */
#include "base/signals.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const int taken[] = {SIGTERM, SIGINT, SIGHUP};

int signals_open(void)
{
    sigset_t set;

    sigemptyset(&set);
    for (unsigned i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        /* Shells start background programs with SIGINT ignored, nohup does the same with SIGHUP,
         * and an ignored signal never reaches the descriptor. */
        signal(taken[i], SIG_DFL);
        sigaddset(&set, taken[i]);
    }
    signal(SIGPIPE, SIG_IGN);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0)
        return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int signals_wait(int descriptor, int timeout_ms)
{
    struct pollfd waited = {.fd = descriptor, .events = POLLIN};
    struct signalfd_siginfo info;
    ssize_t length;

    if (poll(&waited, 1, timeout_ms) <= 0)
        return 0;
    length = read(descriptor, &info, sizeof(info));
    return length == (ssize_t)sizeof(info) ? (int)info.ssi_signo : 0;
}

static void end_now(int signal_number)
{
    (void)signal_number;
    _exit(0);
}

void signals_end_after(unsigned seconds)
{
    signal(SIGALRM, end_now);
    alarm(seconds);
}
