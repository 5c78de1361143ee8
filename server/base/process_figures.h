/* The kernel's figures about this process: processor time, memory, descriptors, threads. */
#ifndef BASE_PROCESS_FIGURES_H
#define BASE_PROCESS_FIGURES_H

#include <stdio.h>

/* Opens the files below /proc/self that are read later, since a sandbox may block access to them.
 * Call it before the first process_figures_write; a second call does nothing. Without it, or
 * without /proc, these figures are omitted. */
void process_figures_open(void);

/* Writes the process_… metrics (base/metrics.h). May be called on any thread. Takes up to some
 * milliseconds if many descriptors are open. */
void process_figures_write(FILE *stream);

#endif
