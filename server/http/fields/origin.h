/* Decides which web pages a request may come from, and under which names it may reach the server.
 * It uses the fields Origin (RFC 6454 section 7), Sec-Fetch-Site (Fetch Metadata Request Headers,
 * section 2.3) and Host.
 *
 * A browser lets any page send writes to any server, and adds the page's origin: writes of foreign
 * pages are refused. A page whose own name was made to resolve to this server (DNS rebinding) does
 * not look foreign, but then its name is the Host (docs/internals/decisions/hosts.md). */
#ifndef HTTP_FIELDS_ORIGIN_H
#define HTTP_FIELDS_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

/* The settings about web pages. All zeros: only the server's own pages may write, and requests may
 * have any Host. */
struct origin_rules {
    bool has_tls;
    bool allows_pages;              /* cors.origins is not empty */
    bool any_origin;                /* cors.origins has * */
    bool local_names;               /* writes must name the server by a local name */
    char origins[CONFIG_TEXT_SIZE]; /* cors.origins */
    char hosts[CONFIG_TEXT_SIZE];
    char listen[256]; /* the host in the listen address */
};

/* needs_client: every operation requires a token or a certificate. */
void origin_rules_load(const struct config *config, bool needs_client,
                       struct origin_rules *out_rules);

/* The fields of a request; NULL if absent. */
struct origin_claim {
    bool is_write;
    const char *origin;
    const char *fetch_site;
    const char *host;
};

enum origin_verdict {
    ORIGIN_ACCEPTED,
    ORIGIN_FOREIGN_HOST,
    ORIGIN_CROSS_SITE, /* foreign Origin, or no Origin and the browser reports cross-site */
};

enum origin_verdict origin_check(const struct origin_rules *rules,
                                 const struct origin_claim *claim);

/* Returns true if cors.origins allows pages of this origin to use the API. */
bool origin_is_listed(const struct origin_rules *rules, const char *origin);

/* Returns the host of a Host field without the port; *out_length may be 0. */
const char *origin_host_name(const char *host, size_t *out_length);

#endif
