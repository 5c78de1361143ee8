/* Visits every state that a small model of concurrent actors can reach, the nearest states first.
 *
 * A state is a block of bytes without pointers and without padding. In each state, some choices are
 * possible: usually "the next step of actor N" or "the process is killed". */
#ifndef ZT_EXPLORE_H
#define ZT_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>

struct explore_model {
    size_t state_size;
    unsigned choices;
    void (*begin)(void *state, const void *context);
    /* Makes a choice and changes the state. Returns false if it is impossible. */
    bool (*choose)(void *state, unsigned choice, const void *context);
    /* Returns what is wrong with a state, or NULL. */
    const char *(*wrong)(const void *state, const void *context);
    /* Names a choice in a state. */
    void (*name)(const void *state, unsigned choice, char *out, size_t size, const void *context);
    const void *context;
};

struct explored {
    size_t states;
    const char *wrong; /* NULL: no state is */
    char trace[4096];  /* the choices that lead to the wrong state, a line each */
};

void explore(const struct explore_model *model, struct explored *out_explored);

#endif
