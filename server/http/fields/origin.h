/* Which web pages a request may come from, and by which names it may reach the server: the fields
 * Origin (RFC 6454 section 7), Sec-Fetch-Site (Fetch Metadata Request Headers, section 2.3) and
 * Host.
 *
 * A browser sends any page's writes anywhere, and the page's origin with them: a write of a foreign
 * page is refused. A page whose own name is made to lead here (DNS rebinding) is not foreign, but
 * its name then is the Host (docs/decisions/hosts.md). */
#ifndef HTTP_FIELDS_ORIGIN_H
#define HTTP_FIELDS_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

/* What the configuration says of pages. All zeros: no page but the server's own may write, and
 * requests may give any Host. */
struct origin_rules {
    bool has_tls;
    bool any_origin;                /* cors.origins has * */
    bool local_names;               /* writes must name the server by a local name */
    char origins[CONFIG_TEXT_SIZE]; /* cors.origins */
    char hosts[CONFIG_TEXT_SIZE];
    char listen[256]; /* the host that it listens on */
};

/* needs_client: nobody may do anything without a token or a certificate. */
void origin_rules_load(const struct config *config, bool needs_client,
                       struct origin_rules *out_rules);

/* What a request says; NULL for an absent field. */
struct origin_claim {
    bool is_write;
    const char *origin;
    const char *fetch_site;
    const char *host;
};

enum origin_verdict {
    ORIGIN_ACCEPTED,
    ORIGIN_FOREIGN_HOST,
    ORIGIN_FOREIGN_PAGE, /* its Origin, or none and the browser says cross-site */
};

enum origin_verdict origin_check(const struct origin_rules *rules,
                                 const struct origin_claim *claim);

/* Whether pages of this origin may use the API, according to cors.origins. */
bool origin_is_listed(const struct origin_rules *rules, const char *origin);

/* The host of a Host field's value, without port; *out_length may be 0. */
const char *origin_host_name(const char *host, size_t *out_length);

#endif
