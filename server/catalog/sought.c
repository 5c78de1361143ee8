#include "catalog/sought.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/workers.h"

static bool is_among(char *const *names, size_t count, struct zt_text name)
{
    size_t at = 0;

    while (at < count && !zt_text_is(name, names[at]))
        at++;
    return at < count;
}

bool sought_has(const struct sought *sought, struct zt_text name)
{
    return is_among(sought->names, sought->count, name);
}

bool sought_add(struct sought *sought, struct zt_text name)
{
    char *copy;

    assert(sought->count <= SOUGHT_MAX);
    if (sought_has(sought, name))
        return true;
    copy = sought->count < SOUGHT_MAX ? strndup(name.bytes, name.length) : NULL;
    if (copy != NULL)
        sought->names[sought->count++] = copy;
    return copy != NULL;
}

bool sought_join(struct sought *sought, struct zt_text name, struct waiter *waiter)
{
    if (!is_among(sought->searching, sought->searching_count, name))
        return false;
    waiter->next = sought->joined;
    sought->joined = waiter;
    return true;
}

void sought_begin(struct sought *sought)
{
    assert(sought->searching_count == 0 && sought->joined == NULL);
    memcpy(sought->searching, sought->names, sought->count * sizeof(sought->names[0]));
    sought->searching_count = sought->count;
    sought->count = 0;
}

struct waiter *sought_end(struct sought *sought)
{
    struct waiter *joined = sought->joined;

    while (sought->searching_count > 0)
        free(sought->searching[--sought->searching_count]);
    sought->joined = NULL;
    return joined;
}
