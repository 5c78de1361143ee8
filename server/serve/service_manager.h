/* The service manager that started the program, if there is one: systemd, or another that speaks
 * its protocol. The server reports its state to it (sd_notify(3)), and takes listening sockets from
 * it (sd_listen_fds(3)).
 *
 * libsystemd is not used: sd_notify opens a socket for each report, which the sandbox forbids, so
 * the watchdog would end a confined server. Here one socket is connected before the sandbox. */
#ifndef SERVE_SERVICE_MANAGER_H
#define SERVE_SERVICE_MANAGER_H

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
    int descriptor;       /* connected to the manager; -1: there is none */
    unsigned watchdog_ms; /* the manager acts after this long without SERVICE_ALIVE; 0: never */
};

/* Connects to the manager that the environment names (NOTIFY_SOCKET, WATCHDOG_USEC). Without one,
 * the other functions do nothing. Returns false with one line in error if the manager cannot be
 * reached. Call it before anything restricts the process. */
bool service_manager_open(struct service_manager *manager, char *error, size_t error_size);
void service_manager_close(struct service_manager *manager);

/* Reports a state, and a line that `systemctl status` shows; status may be NULL. */
void service_manager_report(const struct service_manager *manager, enum service_state state,
                            const char *status);

/* Asks the manager to wait this many more seconds for the end of the program. */
void service_manager_extend(const struct service_manager *manager, unsigned seconds);

struct service_sockets {
    unsigned count;
    int descriptors[SERVICE_SOCKETS_MAX];
};

/* Takes over the listening TCP sockets that the manager passed (LISTEN_PID, LISTEN_FDS,
 * LISTEN_FDNAMES), if any. Returns false with one line in error if it passed other descriptors. */
bool service_sockets_take(struct service_sockets *out_sockets, char *error, size_t error_size);

#endif
