/* A list in order of last use, for caches; the oldest entry is evicted first. The links are members
 * of the cache's entries; the cache's own lock protects the list. */
#ifndef BASE_RECENCY_H
#define BASE_RECENCY_H

#include <assert.h>
#include <stddef.h>

/* The first member of an entry, so that a link is its entry. */
struct recency_link {
    struct recency_link *newer;
    struct recency_link *older;
};

/* All zero is an empty list. */
struct recency {
    struct recency_link *newest;
    struct recency_link *oldest;
    size_t count;
};

static inline void recency_add(struct recency *list, struct recency_link *link)
{
    assert((list->newest == NULL) == (list->count == 0));
    link->newer = NULL;
    link->older = list->newest;
    if (list->newest != NULL)
        list->newest->newer = link;
    else
        list->oldest = link;
    list->newest = link;
    list->count++;
}

static inline void recency_remove(struct recency *list, struct recency_link *link)
{
    assert(list->count > 0);
    assert((link->newer == NULL) == (list->newest == link));
    assert((link->older == NULL) == (list->oldest == link));
    if (link->newer != NULL)
        link->newer->older = link->older;
    else
        list->newest = link->older;
    if (link->older != NULL)
        link->older->newer = link->newer;
    else
        list->oldest = link->newer;
    link->newer = NULL;
    link->older = NULL;
    list->count--;
    assert((list->oldest == NULL) == (list->count == 0));
}

/* Makes an entry of the list the newest. */
static inline void recency_touch(struct recency *list, struct recency_link *link)
{
    if (list->newest == link)
        return;
    recency_remove(list, link);
    recency_add(list, link);
}

#endif
