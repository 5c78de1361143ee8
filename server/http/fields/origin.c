/* Compares hosts and schemes case-insensitively (RFC 3986 section 6.2.2.1). */
#include "http/fields/origin.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A text of a field or of a list, without a NUL at its end. */
struct part {
    const char *text;
    size_t length;
};

static bool is_equal(struct part a, struct part b)
{
    return a.length == b.length && strncasecmp(a.text, b.text, a.length) == 0;
}

static struct part part_of(const char *text)
{
    return (struct part){text, strlen(text)};
}

static bool ends_with(struct part part, const char *end)
{
    const size_t length = strlen(end);

    return part.length >= length && strncasecmp(part.text + part.length - length, end, length) == 0;
}

/* Blanks after a value do not belong to it (RFC 9112 section 5). */
static struct part trimmed(const char *value)
{
    struct part part = part_of(value);

    while (part.length > 0 &&
           (part.text[part.length - 1] == ' ' || part.text[part.length - 1] == '\t'))
        part.length--;
    return part;
}

/* --- Origin --- */

bool origin_is_listed(const struct origin_rules *rules, const char *origin)
{
    const char *position = rules->origins;
    const struct part wanted = trimmed(origin);
    struct part word;

    if (rules->any_origin)
        return true;
    while ((word.text = config_list_next(&position, &word.length)) != NULL)
        if (is_equal(word, wanted))
            return true;
    return false;
}

/* Removes the scheme's default port, which Host may include and an origin omits. */
static struct part without_port(struct part host, const char *port)
{
    if (ends_with(host, port))
        host.length -= strlen(port);
    return host;
}

/* Returns true if the page came from this server, judging by the scheme and host of the request. A
 * proxy in front may add TLS, so https pages count even if the server itself has no TLS. */
static bool is_own(const struct origin_rules *rules, const char *origin, const char *host)
{
    const struct part page = trimmed(origin);
    const bool is_https = strncasecmp(origin, "https://", 8) == 0;
    const size_t scheme = is_https ? strlen("https://") : strlen("http://");

    if (host == NULL || (!is_https && (rules->has_tls || strncasecmp(origin, "http://", 7) != 0)))
        return false;
    if (page.length <= scheme)
        return false;
    return is_equal((struct part){page.text + scheme, page.length - scheme},
                    without_port(trimmed(host), is_https ? ":443" : ":80"));
}

static bool is_cross_site(const struct origin_rules *rules, const struct origin_claim *claim)
{
    if (claim->origin != NULL && origin_is_listed(rules, claim->origin))
        return false;
    if (claim->fetch_site != NULL && strcasecmp(claim->fetch_site, "cross-site") == 0)
        return true;
    return claim->origin != NULL && !is_own(rules, claim->origin, claim->host);
}

/* --- Host --- */

const char *origin_host_name(const char *host, size_t *out_length)
{
    const struct part whole = trimmed(host);
    const char *end = memchr(whole.text, ']', whole.length);
    size_t length = end != NULL ? (size_t)(end - whole.text) + 1 : strcspn(whole.text, ":");

    *out_length = length < whole.length ? length : whole.length;
    return whole.text;
}

/* "localhost" and its subdomains may also end with the dot of the DNS root (RFC 6761 section
 * 6.3). */
static bool is_localhost(struct part name)
{
    if (name.length > 0 && name.text[name.length - 1] == '.')
        name.length--;
    return is_equal(name, part_of("localhost")) || ends_with(name, ".localhost");
}

static bool is_loopback(struct part name)
{
    struct config_listen place;

    if (is_localhost(name))
        return true;
    if (name.length > 1 && name.text[0] == '[' && name.text[name.length - 1] == ']')
        name = (struct part){name.text + 1, name.length - 2};
    if (name.length == 0 || name.length >= sizeof(place.host))
        return false;
    memcpy(place.host, name.text, name.length);
    place.host[name.length] = '\0';
    return config_listen_is_loopback(&place);
}

/* A name without a dot is never a public domain. */
static bool is_plain_name(struct part name)
{
    return name.length > 0 && name.text[0] != '[' && memchr(name.text, '.', name.length) == NULL;
}

static bool is_listening_address(const struct origin_rules *rules, struct part name)
{
    if (name.length > 1 && name.text[0] == '[' && name.text[name.length - 1] == ']')
        name = (struct part){name.text + 1, name.length - 2};
    return is_equal(name, part_of(rules->listen));
}

/* A listed host with a port allows only that port; without one it allows all. */
static bool is_in_hosts(const struct origin_rules *rules, const char *host, struct part name)
{
    const char *position = rules->hosts;
    struct part word;

    while ((word.text = config_list_next(&position, &word.length)) != NULL)
        if (is_equal(word, name) || is_equal(word, trimmed(host)))
            return true;
    return false;
}

static bool is_unlisted_host(const struct origin_rules *rules, const struct origin_claim *claim)
{
    struct part name;

    if (rules->hosts[0] == '\0' && (!rules->local_names || !claim->is_write))
        return false;
    /* HTTP/1.0 does not require Host, but all browsers send it. */
    if (claim->host == NULL)
        return rules->hosts[0] != '\0';
    name.text = origin_host_name(claim->host, &name.length);
    if (rules->hosts[0] != '\0')
        return !is_in_hosts(rules, claim->host, name);
    return !is_loopback(name) && !is_plain_name(name) && !is_listening_address(rules, name);
}

enum origin_verdict origin_check(const struct origin_rules *rules, const struct origin_claim *claim)
{
    if (is_unlisted_host(rules, claim))
        return ORIGIN_FOREIGN_HOST;
    return claim->is_write && is_cross_site(rules, claim) ? ORIGIN_CROSS_SITE : ORIGIN_ACCEPTED;
}

/* --- the configuration --- */

void origin_rules_load(const struct config *config, bool needs_client,
                       struct origin_rules *out_rules)
{
    const char *position = config->cors.origins;
    struct config_listen listen = {.host = ""};
    struct config_message message;
    struct part word;

    *out_rules = (struct origin_rules){.has_tls = config->tls.cert[0] != '\0'};
    /* config_validate has accepted the address. */
    (void)config_listen_parse(config->listen, &listen, &message);
    out_rules->local_names = !needs_client && config_listen_is_loopback(&listen);
    snprintf(out_rules->listen, sizeof(out_rules->listen), "%s", listen.host);
    out_rules->allows_pages = config->cors.origins[0] != '\0';
    memcpy(out_rules->origins, config->cors.origins, sizeof(out_rules->origins));
    memcpy(out_rules->hosts, config->hosts, sizeof(out_rules->hosts));
    while ((word.text = config_list_next(&position, &word.length)) != NULL)
        out_rules->any_origin = out_rules->any_origin || is_equal(word, part_of("*"));
}
