/* Two counters for the process, and a hash table of addresses under one lock. One lock suffices,
 * since connections are opened far less often than requests are made. */
#include "http/limits/admission.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "config/network.h"

/* Chains stay short up to a few thousand addresses. */
#define BUCKETS 1024

/* --- the process --- */

/* Counted separately: a client that is being turned away takes no regular place. */
static atomic_uint admitted;
static atomic_uint surplus;

bool admission_is_open(unsigned limit)
{
    return atomic_load_explicit(&admitted, memory_order_relaxed) < limit ||
           atomic_load_explicit(&surplus, memory_order_relaxed) < ADMISSION_SURPLUS;
}

bool admission_enter(unsigned limit)
{
    unsigned count = atomic_load_explicit(&admitted, memory_order_relaxed);

    while (count < limit)
        if (atomic_compare_exchange_weak_explicit(&admitted, &count, count + 1,
                                                  memory_order_relaxed, memory_order_relaxed))
            return true;
    atomic_fetch_add_explicit(&surplus, 1, memory_order_relaxed);
    return false;
}

void admission_leave(bool was_admitted)
{
    const unsigned before =
        atomic_fetch_sub_explicit(was_admitted ? &admitted : &surplus, 1, memory_order_relaxed);

    assert(before > 0);
    (void)before;
}

unsigned admission_count(unsigned *out_surplus)
{
    *out_surplus = atomic_load_explicit(&surplus, memory_order_relaxed);
    return atomic_load_explicit(&admitted, memory_order_relaxed);
}

/* --- addresses --- */

struct entry {
    struct entry *next;
    unsigned count;
    uint8_t address[16];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *buckets[BUCKETS];

/* Returns the link to the entry of an address, or to the end of its chain. The hash is FNV-1a: an
 * attacker who chooses addresses only gets a longer chain, and the limit on connections bounds its
 * length. */
static struct entry **find_link(const uint8_t bytes[16])
{
    uint32_t hash = 2166136261u;
    struct entry **link;

    for (unsigned i = 0; i < 16; i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    link = &buckets[hash % BUCKETS];
    while (*link != NULL && memcmp((*link)->address, bytes, 16) != 0)
        link = &(*link)->next;
    return link;
}

static struct entry *add_entry(struct entry **link, const uint8_t bytes[16])
{
    struct entry *entry = calloc(1, sizeof(*entry));

    if (entry == NULL)
        return NULL;
    memcpy(entry->address, bytes, 16);
    *link = entry;
    return entry;
}

bool admission_enter_address(const struct sockaddr *address, unsigned limit)
{
    struct address known = {{0}};
    struct entry **link;
    struct entry *entry;
    bool entered;

    assert(limit > 0);
    address_of_socket(address, &known);
    pthread_mutex_lock(&lock);
    link = find_link(known.bytes);
    entry = *link != NULL ? *link : add_entry(link, known.bytes);
    entered = entry != NULL && entry->count < limit;
    if (entered)
        entry->count++;
    pthread_mutex_unlock(&lock);
    return entered;
}

void admission_leave_address(const struct sockaddr *address)
{
    struct address known = {{0}};
    struct entry **link;
    struct entry *entry;

    address_of_socket(address, &known);
    pthread_mutex_lock(&lock);
    link = find_link(known.bytes);
    entry = *link;
    assert(entry != NULL && entry->count > 0);
    if (--entry->count == 0) {
        *link = entry->next;
        free(entry);
    }
    pthread_mutex_unlock(&lock);
}
