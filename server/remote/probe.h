/* One GET to a server, for the status of its answer: a check of its health, with libcurl. Blocks,
 * and needs no struct remote. */
#ifndef REMOTE_PROBE_H
#define REMOTE_PROBE_H

#include <stdbool.h>

#define PROBE_URL_SIZE 2048
/* Enough for a status line, or a reason. */
#define PROBE_TEXT_SIZE 4096

struct probe {
    char url[PROBE_URL_SIZE];
    bool is_loopback;       /* the host is this machine */
    const char *host_field; /* Host; NULL: the URL's */
    const char *ca_file;    /* PEM; NULL: the system's */
    bool any_certificate;   /* accepts every certificate */
    const char *token;      /* NULL: none; printable ASCII */
    unsigned timeout_s;
};

/* Parses a URL of http or https, without a user, and sets url and is_loopback. A URL without a path
 * gets default_path. False: it is no such URL. */
bool probe_url_parse(struct probe *probe, const char *url, const char *default_path);

/* Sends the request, past every proxy, and writes the status and reason of the answer ("200 OK").
 * False with a reason in out_text if no answer of HTTP arrived. */
bool probe_run(const struct probe *probe, char out_text[PROBE_TEXT_SIZE]);

#endif
