/* The service manager that started the program, if there is one: systemd, or whatever else speaks
 * its protocol. It is told how the server is doing (sd_notify(3)), and may pass listening sockets
 * (sd_listen_fds(3)).
 *
 * libsystemd is not used: what is needed of it is a datagram and a few environment variables. */
#ifndef BASE_SERVICE_MANAGER_H
#define BASE_SERVICE_MANAGER_H

#include <stdbool.h>
#include <stddef.h>

#define SERVICE_SOCKETS_MAX 16u

enum service_state {
    SERVICE_READY,
    SERVICE_RELOADING, /* until the next SERVICE_READY */
    SERVICE_STOPPING,
    SERVICE_ALIVE, /* keeps the watchdog quiet */
};

struct service_manager {
    int descriptor;       /* connected to the manager; -1: nobody listens */
    unsigned watchdog_ms; /* the manager acts after this long without SERVICE_ALIVE; 0: never */
};

/* Connects to the manager that the environment names (NOTIFY_SOCKET, WATCHDOG_USEC); without one,
 * everything else does nothing. False with one line in error if the environment names a manager
 * that cannot be reached. Call it before anything restricts the process. */
bool service_manager_open(struct service_manager *manager, char *error, size_t error_size);
void service_manager_close(struct service_manager *manager);

/* Reports a state, and a line for people that `systemctl status` shows; status may be NULL. */
void service_manager_report(const struct service_manager *manager, enum service_state state,
                            const char *status);

/* Asks for this many more seconds, since the end of the program may take longer than the manager
 * would wait. */
void service_manager_extend(const struct service_manager *manager, unsigned seconds);

struct service_sockets {
    unsigned count;
    int descriptors[SERVICE_SOCKETS_MAX];
};

/* Takes over the listening TCP sockets that the manager passed (LISTEN_PID, LISTEN_FDS,
 * LISTEN_FDNAMES), if any. False with one line in error if it passed something else. */
bool service_sockets_take(struct service_sockets *out_sockets, char *error, size_t error_size);

#endif
