/* Which system calls can be made (seccomp). */
#ifndef SANDBOX_SYSTEM_CALLS_H
#define SANDBOX_SYSTEM_CALLS_H

#include <stdbool.h>

/* Restricts this thread, and those that it will start, to the calls that a server makes. A call
 * that it never makes fails with ENOSYS, as in a kernel that lacks it, so that libraries fall back;
 * one that only an intruder makes ends the process (SIGSYS). Returns 0, or an error number and
 * nothing is in force. Privileges must have been given up before. connects: also the calls of a
 * client, which are making TCP and UDP sockets and connecting them. */
int system_calls_confine(bool connects);

#endif
