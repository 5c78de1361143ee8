/* A list of networks: there are few of them. */
#include "access/proxies.h"

#include <assert.h>
#include <stdlib.h>

#include "config/config.h"

bool proxies_load(const char *list, struct proxies *out_proxies)
{
    struct proxies proxies = {NULL, 0};
    const char *position = list;
    const char *word;
    size_t length;
    size_t count = 0;

    while (config_list_next(&position, &length) != NULL)
        count++;
    if (count > 0)
        proxies.networks = calloc(count, sizeof(*proxies.networks));
    if (count > 0 && proxies.networks == NULL)
        return false;
    position = list;
    while ((word = config_list_next(&position, &length)) != NULL) {
        bool is_network;

        assert(proxies.count < count);
        is_network = network_parse(word, length, &proxies.networks[proxies.count]);
        assert(is_network);
        proxies.count += is_network;
    }
    *out_proxies = proxies;
    return true;
}

void proxies_free(struct proxies *proxies)
{
    free(proxies->networks);
    *proxies = (struct proxies){NULL, 0};
}

bool proxies_contain(const struct proxies *proxies, const struct address *address)
{
    for (size_t i = 0; i < proxies->count; i++)
        if (network_contains(&proxies->networks[i], address))
            return true;
    return false;
}
