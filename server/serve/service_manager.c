/* Sends one datagram for each report, and reads the variables of the two protocols. */
#include "serve/service_manager.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/decimal.h"

/* Enough for a path and a sentence. */
#define REPORT_SIZE 8192
/* The first descriptor that is passed: SD_LISTEN_FDS_START. */
#define FIRST_PASSED  3
#define US_PER_MS     1000
#define US_PER_SECOND 1000000
/* A longer name of a descriptor is cut. */
#define NAME_SHOWN 64

/* Returns true if a variable that names a process (LISTEN_PID) names another one: the variables
 * were meant for a program that started this one. */
static bool is_for_another(const char *variable)
{
    const char *text = getenv(variable);
    uint64_t number;

    return text != NULL && (!zt_decimal_read(zt_text_from(text), UINT64_MAX, &number) ||
                            number != (uint64_t)getpid());
}

/* --- reports --- */

/* Parses a path, or '@' and the name of an abstract socket. */
static bool manager_address(const char *text, struct sockaddr_un *out_address,
                            socklen_t *out_length)
{
    const size_t length = strlen(text);

    *out_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if ((text[0] != '/' && text[0] != '@') || length < 2 || length >= sizeof(out_address->sun_path))
        return false;
    memcpy(out_address->sun_path, text, length);
    if (text[0] == '@')
        out_address->sun_path[0] = '\0';
    *out_length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    return true;
}

static bool connect_to(struct service_manager *manager, const char *where, char *error,
                       size_t error_size)
{
    struct sockaddr_un address;
    socklen_t length;

    if (!manager_address(where, &address, &length)) {
        snprintf(error, error_size, "NOTIFY_SOCKET: \"%.100s\" is not a local socket", where);
        return false;
    }
    manager->descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (manager->descriptor >= 0 &&
        connect(manager->descriptor, (const struct sockaddr *)&address, length) == 0)
        return true;
    snprintf(error, error_size, "NOTIFY_SOCKET: %.100s: %s", where, strerrordesc_np(errno));
    service_manager_close(manager);
    return false;
}

bool service_manager_open(struct service_manager *manager, char *error, size_t error_size)
{
    const char *where = getenv("NOTIFY_SOCKET");
    const char *watchdog = getenv("WATCHDOG_USEC");
    uint64_t watchdog_us = 0;

    *manager = (struct service_manager){.descriptor = -1};
    if (where == NULL || where[0] == '\0')
        return true;
    if (watchdog != NULL && !is_for_another("WATCHDOG_PID") &&
        !zt_decimal_read(zt_text_from(watchdog), (uint64_t)INT32_MAX * US_PER_MS, &watchdog_us)) {
        snprintf(error, error_size, "WATCHDOG_USEC: \"%.100s\" is not a number of microseconds",
                 watchdog);
        return false;
    }
    if (!connect_to(manager, where, error, error_size))
        return false;
    manager->watchdog_ms = (unsigned)(watchdog_us / US_PER_MS);
    return true;
}

void service_manager_close(struct service_manager *manager)
{
    if (manager->descriptor >= 0)
        close(manager->descriptor);
    manager->descriptor = -1;
}

/* Errors are ignored: the manager acts if it misses a report. */
static void send_report(const struct service_manager *manager, const char *text)
{
    assert(manager->descriptor >= 0);
    while (send(manager->descriptor, text, strlen(text), MSG_NOSIGNAL) < 0 && errno == EINTR)
        ;
}

void service_manager_report(const struct service_manager *manager, enum service_state state,
                            const char *status)
{
    static const char *const assignments[] = {
        [SERVICE_READY] = "READY=1",
        [SERVICE_RELOADING] = "RELOADING=1",
        [SERVICE_STOPPING] = "STOPPING=1",
        [SERVICE_ALIVE] = "WATCHDOG=1",
    };
    char since[64] = "";
    char text[REPORT_SIZE];

    if (manager->descriptor < 0)
        return;
    /* The time distinguishes the end of this reload from an earlier one. */
    if (state == SERVICE_RELOADING)
        snprintf(since, sizeof(since), "\nMONOTONIC_USEC=%" PRId64, clock_ns() / 1000);
    snprintf(text, sizeof(text), "%s%s%s", assignments[state], since,
             status != NULL ? "\nSTATUS=" : "");
    if (status != NULL) {
        char *at = text + strlen(text);

        snprintf(at, sizeof(text) - (size_t)(at - text), "%s", status);
        /* A line break in a path would begin another assignment. */
        for (; *at != '\0'; at++)
            if ((unsigned char)*at < 0x20)
                *at = '?';
    }
    send_report(manager, text);
}

void service_manager_extend(const struct service_manager *manager, unsigned seconds)
{
    char text[64];

    if (manager->descriptor < 0)
        return;
    snprintf(text, sizeof(text), "EXTEND_TIMEOUT_USEC=%" PRIu64, (uint64_t)seconds * US_PER_SECOND);
    send_report(manager, text);
}

/* --- sockets --- */

static bool has_option(int descriptor, int option, int wanted)
{
    int value = 0;
    socklen_t length = sizeof(value);

    return getsockopt(descriptor, SOL_SOCKET, option, &value, &length) == 0 && value == wanted;
}

static bool is_listening_tcp(int descriptor)
{
    return has_option(descriptor, SO_TYPE, SOCK_STREAM) &&
           has_option(descriptor, SO_ACCEPTCONN, 1) &&
           (has_option(descriptor, SO_DOMAIN, AF_INET) ||
            has_option(descriptor, SO_DOMAIN, AF_INET6));
}

/* Copies the name of a passed descriptor: the index-th of a list with colons. */
static void name_of(unsigned index, char out_name[NAME_SHOWN])
{
    const char *at = getenv("LISTEN_FDNAMES");

    for (; at != NULL && index > 0; index--) {
        at = strchr(at, ':');
        at = at != NULL ? at + 1 : NULL;
    }
    snprintf(out_name, NAME_SHOWN, "%.*s", at != NULL ? (int)strcspn(at, ":") : 0,
             at != NULL ? at : "");
}

static bool prepare(int descriptor)
{
    const int flags = fcntl(descriptor, F_GETFL);

    return flags >= 0 && fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0 &&
           fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0;
}

bool service_sockets_take(struct service_sockets *out_sockets, char *error, size_t error_size)
{
    const char *listed = getenv("LISTEN_FDS");
    struct service_sockets sockets = {.count = 0};
    uint64_t count = 0;

    if (listed != NULL && getenv("LISTEN_PID") != NULL && !is_for_another("LISTEN_PID") &&
        !zt_decimal_read(zt_text_from(listed), SERVICE_SOCKETS_MAX, &count)) {
        snprintf(error, error_size, "LISTEN_FDS: \"%.100s\" is not a number from 0 to %u", listed,
                 SERVICE_SOCKETS_MAX);
        return false;
    }
    for (; sockets.count < count; sockets.count++) {
        const int descriptor = FIRST_PASSED + (int)sockets.count;
        char name[NAME_SHOWN];

        if (!is_listening_tcp(descriptor) || !prepare(descriptor)) {
            name_of(sockets.count, name);
            snprintf(error, error_size,
                     "LISTEN_FDS: descriptor %d (\"%s\") is not a listening TCP socket; the socket "
                     "unit needs ListenStream= with a port, and Accept=no",
                     descriptor, name);
            return false;
        }
        sockets.descriptors[sockets.count] = descriptor;
    }
    *out_sockets = sockets;
    return true;
}
