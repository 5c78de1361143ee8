/* A hash table of addresses under one lock: connections are opened far more seldom than requests
 * are made. */
#include "http/wire/address_limit.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Chains stay short up to some thousand addresses. */
#define BUCKETS 1024

struct entry {
    struct entry *next;
    unsigned count;
    uint8_t address[16];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *buckets[BUCKETS];

/* IPv4 as IPv6 maps it, so that both are one kind. */
static void address_bytes(const struct sockaddr *address, uint8_t out_bytes[16])
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

    memset(out_bytes, 0, 16);
    if (address->sa_family == AF_INET6) {
        memcpy(out_bytes, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, 16);
    } else if (address->sa_family == AF_INET) {
        memcpy(out_bytes, mapped, sizeof(mapped));
        memcpy(out_bytes + 12, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
    }
}

/* The place that points to the address's entry, or the chain's end. FNV-1a: an attacker who chooses
 * addresses gains a longer chain, bounded by the connections there may be. */
static struct entry **find(const uint8_t bytes[16])
{
    uint32_t hash = 2166136261u;
    struct entry **place;

    for (unsigned i = 0; i < 16; i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    place = &buckets[hash % BUCKETS];
    while (*place != NULL && memcmp((*place)->address, bytes, 16) != 0)
        place = &(*place)->next;
    return place;
}

static struct entry *add(struct entry **place, const uint8_t bytes[16])
{
    struct entry *entry = calloc(1, sizeof(*entry));

    if (entry == NULL)
        return NULL;
    memcpy(entry->address, bytes, 16);
    *place = entry;
    return entry;
}

bool address_limit_enter(const struct sockaddr *address, unsigned limit)
{
    uint8_t bytes[16];
    struct entry **place;
    struct entry *entry;
    bool entered;

    address_bytes(address, bytes);
    pthread_mutex_lock(&lock);
    place = find(bytes);
    entry = *place != NULL ? *place : add(place, bytes);
    entered = entry != NULL && entry->count < limit;
    if (entered)
        entry->count++;
    pthread_mutex_unlock(&lock);
    return entered;
}

void address_limit_leave(const struct sockaddr *address)
{
    uint8_t bytes[16];
    struct entry **place;
    struct entry *entry;

    address_bytes(address, bytes);
    pthread_mutex_lock(&lock);
    place = find(bytes);
    entry = *place;
    if (entry != NULL && --entry->count == 0) {
        *place = entry->next;
        free(entry);
    }
    pthread_mutex_unlock(&lock);
}
