#include "explore.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 4096

/* How a state was reached first. */
struct origin {
    uint32_t before;
    uint32_t choice;
};

struct visited {
    size_t state_size;
    size_t count;
    size_t capacity; /* of states and origins */
    unsigned char *states;
    struct origin *origins;
    size_t slots;    /* a power of two, more than twice the capacity */
    uint32_t *table; /* number of a state + 1; 0: free */
};

static void *grown(void *memory, size_t count, size_t size)
{
    void *made = realloc(memory, count * size);

    assert(made != NULL);
    return made;
}

static const void *state_at(const struct visited *visited, size_t number)
{
    return visited->states + number * visited->state_size;
}

static uint64_t hash(const unsigned char *bytes, size_t size)
{
    uint64_t mixed = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < size; i++)
        mixed = (mixed ^ bytes[i]) * UINT64_C(0x100000001b3);
    return mixed ^ (mixed >> 29);
}

static uint32_t *slot_of(const struct visited *visited, const void *state)
{
    size_t at = (size_t)hash(state, visited->state_size) & (visited->slots - 1);

    while (visited->table[at] != 0 &&
           memcmp(state_at(visited, visited->table[at] - 1), state, visited->state_size) != 0)
        at = (at + 1) & (visited->slots - 1);
    return &visited->table[at];
}

static void make_room(struct visited *visited)
{
    if (visited->count < visited->capacity)
        return;
    visited->capacity = visited->capacity == 0 ? FIRST_CAPACITY : 2 * visited->capacity;
    visited->states = grown(visited->states, visited->capacity, visited->state_size);
    visited->origins = grown(visited->origins, visited->capacity, sizeof(*visited->origins));
    visited->slots = 4 * visited->capacity;
    free(visited->table);
    visited->table = calloc(visited->slots, sizeof(*visited->table));
    assert(visited->table != NULL);
    for (size_t i = 0; i < visited->count; i++)
        *slot_of(visited, state_at(visited, i)) = (uint32_t)(i + 1);
}

/* Does nothing if the state is known. */
static void add(struct visited *visited, const void *state, size_t before, unsigned choice)
{
    uint32_t *slot;

    make_room(visited);
    slot = slot_of(visited, state);
    if (*slot != 0)
        return;
    memcpy(visited->states + visited->count * visited->state_size, state, visited->state_size);
    visited->origins[visited->count] = (struct origin){(uint32_t)before, choice};
    *slot = (uint32_t)++visited->count;
}

static void write_trace(const struct explore_model *model, const struct visited *visited,
                        size_t number, char *out, size_t size)
{
    char line[128];
    size_t before = visited->origins[number].before;
    size_t used;

    out[0] = '\0';
    if (number == 0)
        return;
    write_trace(model, visited, before, out, size);
    model->name(state_at(visited, before), visited->origins[number].choice, line, sizeof(line),
                model->context);
    used = strlen(out);
    snprintf(out + used, size - used, "%s\n", line);
}

/* Adds the states that follow one. */
static void follow(const struct explore_model *model, struct visited *visited, size_t number,
                   void *next)
{
    for (unsigned choice = 0; choice < model->choices; choice++) {
        memcpy(next, state_at(visited, number), model->state_size);
        if (model->choose(next, choice, model->context))
            add(visited, next, number, choice);
    }
}

void explore(const struct explore_model *model, struct explored *out_explored)
{
    struct visited visited = {.state_size = model->state_size};
    void *next = calloc(1, model->state_size);

    assert(next != NULL);
    memset(out_explored, 0, sizeof(*out_explored));
    model->begin(next, model->context);
    add(&visited, next, 0, 0);
    for (size_t i = 0; i < visited.count && out_explored->wrong == NULL; i++) {
        follow(model, &visited, i, next);
        out_explored->wrong = model->wrong(state_at(&visited, i), model->context);
        if (out_explored->wrong != NULL)
            write_trace(model, &visited, i, out_explored->trace, sizeof(out_explored->trace));
    }
    out_explored->states = visited.count;
    free(next);
    free(visited.states);
    free(visited.origins);
    free(visited.table);
}
