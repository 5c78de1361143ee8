/* The client of a request: the peer of its connection, or the client that a trusted proxy names. */
#ifndef HTTP_EXCHANGE_CLIENT_H
#define HTTP_EXCHANGE_CLIENT_H

#include "config/network.h"
#include "http/exchange/request.h"

#define CLIENT_SIZE ADDRESS_TEXT_SIZE

/* The peer of a connection. */
struct peer {
    struct address address;
    char text[CLIENT_SIZE]; /* the address */
    uint64_t key;           /* for request_client_key */
};

/* Fills in the text and the key as well, once for all requests of a connection. */
void peer_set(struct peer *peer, const struct address *address);

/* Returns true if the peer is a proxy in trusted_proxies. */
bool request_is_from_proxy(const struct request *request);

/* Returns the address for which a proxy in trusted_proxies forwards the request. Returns NULL if
 * the peer is not such a proxy, or names no trustworthy address. Valid as long as the request. */
const char *request_forwarded(struct request *request);

/* Writes the client's address, to whose limits an upload counts: the forwarded address, or else the
 * peer's. Empty if unknown. */
void request_client(struct request *request, char out_text[CLIENT_SIZE]);

/* Returns a number that identifies the client, so that workers are shared fairly between clients
 * (struct job). It is derived from the client's name, or else from its address (for IPv6, the first
 * 64 bits). Never 0. */
uint64_t request_client_key(struct request *request);

#endif
