/* Who a request comes from: the peer of its connection, or whom a trusted proxy names. */
#ifndef HTTP_EXCHANGE_CLIENT_H
#define HTTP_EXCHANGE_CLIENT_H

#include "config/network.h"
#include "http/exchange/request.h"

#define CLIENT_SIZE ADDRESS_TEXT_SIZE

/* Whether the peer is a proxy in trusted_proxies. */
bool request_is_from_proxy(const struct request *request);

/* The address that a proxy in trusted_proxies forwards the request for. NULL if the peer is none,
 * or names no address that can be believed. Lives as long as the request. */
const char *request_forwarded(struct request *request);

/* The client's address, whose limits an upload counts toward: the forwarded one, or the peer's.
 * Empty if it is unknown. */
void request_client(struct request *request, char out_text[CLIENT_SIZE]);

/* A number for who the client is, which shares the workers with others (struct job): by its name,
 * or else by its address, of which IPv6 counts the first 64 bits. Never 0. */
uint64_t request_client_key(struct request *request);

#endif
