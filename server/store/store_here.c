/* Counted per thread, because a thread writes for one request at a time. */
#include "store/store_here.h"

#include <assert.h>

static _Thread_local unsigned depth;

void store_here_begin(void)
{
    depth++;
    assert(depth > 0);
}

void store_here_end(void)
{
    assert(depth > 0);
    depth--;
}

bool store_here_only(void)
{
    return depth > 0;
}
