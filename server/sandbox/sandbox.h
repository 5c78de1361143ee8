/* Gives up what a running server does not need, so that whoever gains control of it through a
 * hostile file or request gets little:
 *
 *   - new privileges: no set-user-id program or file capability raises them any more;
 *   - files: only the places that the caller names can be opened (Landlock). Files that are open
 *     already stay usable, and so do their descriptors' places in /proc/self/fd;
 *   - the network: no TCP socket can be bound any more, nor connected by a server whose files are
 *     its own (Landlock);
 *   - system calls: those that a server makes are allowed, and no others. No process can be
 *     started, no code mapped, and no socket, link or device made.
 *
 * All of that holds until the process ends. Threads inherit it when they are started: it must come
 * before the first one. */
#ifndef SANDBOX_SANDBOX_H
#define SANDBOX_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

/* What stays possible with a folder and everything below it, or with a single file. */
enum sandbox_access {
    SANDBOX_READ,    /* files can be read, folders listed */
    SANDBOX_FILES,   /* files can be read, folders not listed */
    SANDBOX_WRITE,   /* the same as READ, and files and folders can be made, changed, removed */
    SANDBOX_UNNAMED, /* files without a name can be made (O_TMPFILE) */
};

struct sandbox_place {
    const char *path;
    enum sandbox_access access;
    bool named; /* in the report */
};

/* Two paths fit. */
#define SANDBOX_REPORT_SIZE 8704

struct sandbox_report {
    bool complete; /* everything is in force */
    /* "no new privileges, Landlock ABI 7 (reads /srv/models), system calls filtered"; what is not
     * in force follows with its reason. */
    char text[SANDBOX_REPORT_SIZE];
};

/* Confines this thread and those that it will start. Places that do not exist are left out.
 * connects: connections to other services can be made. What the kernel lacks stops nothing: it is
 * named in the report. In a program that is built with a sanitizer, whose runtime needs more than
 * the server, nothing is done but the report. */
void sandbox_enter(const struct sandbox_place *places, size_t count, bool connects,
                   struct sandbox_report *out_report);

/* Keeps secrets in the process's memory from core dumps, and from other processes of the same user.
 * At any time; takes effect for all threads. */
void sandbox_hide_memory(void);

#endif
