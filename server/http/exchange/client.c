/* Reads the fields of proxies only if trusted proxies are configured. */
#include "http/exchange/client.h"

#include <string.h>

#include "access/access.h"
#include "http/exchange/request_state.h"
#include "http/fields/forwarded.h"
#include "zt/digest.h"

static uint64_t key_of_address(const struct address *address)
{
    static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    const bool is_v4 = memcmp(address->bytes, mapped, sizeof(mapped)) == 0;

    return zt_xxh3(address->bytes, is_v4 ? sizeof(address->bytes) : sizeof(address->bytes) / 2);
}

void peer_set(struct peer *peer, const struct address *address)
{
    peer->address = *address;
    address_print(address, peer->text);
    peer->key = key_of_address(address);
}

static bool is_trusted(const void *context, const struct address *address)
{
    return proxies_contain(context, address);
}

bool request_is_from_proxy(const struct request *request)
{
    const struct peer *peer = request_state_const(request)->peer;

    return peer != NULL && proxies_contain(&request->access->proxies, &peer->address);
}

static const char *find_forwarded(struct request *request)
{
    const struct trust trust = {is_trusted, &request->access->proxies};
    struct address address;
    char *text;

    if (!request_is_from_proxy(request) ||
        !forwarded_client(request_header(request, "Forwarded"),
                          request_header(request, "X-Forwarded-For"), &trust, &address))
        return NULL;
    text = request_allocate(request, CLIENT_SIZE);
    if (text != NULL)
        address_print(&address, text);
    return text;
}

const char *request_forwarded(struct request *request)
{
    struct request_state *state = request_state(request);

    if (request->access->proxies.count == 0)
        return NULL;
    if (!state->forwarded_is_known) {
        state->forwarded_is_known = true;
        state->forwarded = find_forwarded(request);
    }
    return state->forwarded;
}

void request_client(struct request *request, char out_text[CLIENT_SIZE])
{
    const char *forwarded = request_forwarded(request);
    const struct peer *peer = request_state(request)->peer;

    out_text[0] = '\0';
    if (forwarded != NULL)
        strcpy(out_text, forwarded);
    else if (peer != NULL)
        strcpy(out_text, peer->text);
}

uint64_t request_client_key(struct request *request)
{
    struct request_state *state = request_state(request);
    const char *forwarded;
    struct address address;

    if (state->client_key != 0)
        return state->client_key;
    forwarded = request->access != NULL ? request_forwarded(request) : NULL;
    if (request->client != NULL)
        state->client_key = zt_xxh3(request->client, strlen(request->client));
    else if (forwarded != NULL && address_parse(forwarded, strlen(forwarded), &address))
        state->client_key = key_of_address(&address);
    else if (state->peer != NULL)
        state->client_key = state->peer->key;
    if (state->client_key == 0)
        state->client_key = 1;
    return state->client_key;
}
