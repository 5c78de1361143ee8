/* What the kernel counts about this process: processor time, memory, descriptors, threads. */
#ifndef BASE_PROCESS_FIGURES_H
#define BASE_PROCESS_FIGURES_H

#include <stdio.h>

/* Opens the files below /proc/self that are read later, since a sandbox may close the way to them.
 * Before the first process_figures_write; a second call does nothing. Without it, or without /proc,
 * the figures that come from there are left out. */
void process_figures_open(void);

/* Writes the process_… metrics (base/metrics.h). From any thread. Takes up to some milliseconds
 * with many open descriptors. */
void process_figures_write(FILE *stream);

#endif
