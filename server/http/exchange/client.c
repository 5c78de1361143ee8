/* Reads the fields of proxies only if trusted proxies are configured. */
#include "http/exchange/client.h"

#include <assert.h>
#include <string.h>

#include "access/access.h"
#include "http/exchange/request_state.h"
#include "http/fields/forwarded.h"
#include "zt/digest.h"

static uint64_t never_0(uint64_t key)
{
    return key != 0 ? key : 1;
}

static uint64_t key_of_address(const struct address *address)
{
    static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    const bool is_v4 = memcmp(address->bytes, mapped, sizeof(mapped)) == 0;

    return never_0(
        zt_xxh3(address->bytes, is_v4 ? sizeof(address->bytes) : sizeof(address->bytes) / 2));
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

void request_find_forwarded(struct request *request)
{
    const struct trust trust = {is_trusted, &request->access->proxies};
    struct request_state *state = request_state(request);
    struct address address;
    char *text;

    assert(state->forwarded == NULL && request->client == NULL);
    if (!request_is_from_proxy(request) ||
        !forwarded_client(request_header(request, "Forwarded"),
                          request_header(request, "X-Forwarded-For"), &trust, &address))
        return;
    text = request_allocate(request, CLIENT_SIZE);
    if (text == NULL)
        return;
    address_print(&address, text);
    state->forwarded = text;
    state->client_key = key_of_address(&address);
}

void request_set_client(struct request *request, const char *name)
{
    request->client = name;
    request_state(request)->client_key = never_0(zt_xxh3(name, strlen(name)));
}

void request_client(struct request *request, char out_text[CLIENT_SIZE])
{
    const char *forwarded = request_state(request)->forwarded;
    const struct peer *peer = request_state(request)->peer;

    out_text[0] = '\0';
    if (forwarded != NULL)
        strcpy(out_text, forwarded);
    else if (peer != NULL)
        strcpy(out_text, peer->text);
}
