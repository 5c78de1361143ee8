/* Counts the users of a version on one thread. */
#include "access/lease.h"

#include <assert.h>
#include <stdlib.h>

/* On the loop's thread. */
static void on_arrival(struct job *job)
{
    struct lease *lease = (struct lease *)job;
    struct lease *before = *lease->current;

    assert(before != lease);
    *lease->current = lease;
    lease_end(before);
}

struct lease *lease_new(struct access *access)
{
    struct lease *lease = calloc(1, sizeof(*lease));

    if (lease == NULL)
        return NULL;
    lease->job.done = on_arrival;
    lease->access = access_hold(access);
    if (access->keys != NULL)
        lease->memory = token_memory_new();
    lease->users = 1;
    return lease;
}

void lease_send(struct lease *lease, struct mailbox *mailbox, struct lease **current)
{
    assert(lease->users == 1 && lease->current == NULL);
    lease->current = current;
    mailbox_put(mailbox, &lease->job.mail);
}

struct lease *lease_use(struct lease *lease)
{
    assert(lease->users > 0);
    lease->users++;
    return lease;
}

void lease_end(void *thing)
{
    struct lease *lease = thing;

    assert(lease->users > 0);
    if (--lease->users > 0)
        return;
    token_memory_free(lease->memory);
    access_release(lease->access);
    free(lease);
}
