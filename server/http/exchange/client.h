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

/* Finds out for which client the request is forwarded, if its peer is a proxy in trusted_proxies
 * and names a trustworthy address. Call it once the header fields are known. */
void request_find_forwarded(struct request *request);

/* Names the client, which must live as long as the request. */
void request_set_client(struct request *request, const char *name);

/* Writes the client's address, to whose limits an upload counts: the forwarded address, or else the
 * peer's. Empty if unknown. */
void request_client(struct request *request, char out_text[CLIENT_SIZE]);

#endif
