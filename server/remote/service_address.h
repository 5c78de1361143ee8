/* The address of a service, taken apart for requests. */
#ifndef REMOTE_SERVICE_ADDRESS_H
#define REMOTE_SERVICE_ADDRESS_H

#include <stdbool.h>

#define SERVICE_TEXT_SIZE 1024

struct service_address {
    char origin[SERVICE_TEXT_SIZE]; /* "https://host:port" */
    char path[SERVICE_TEXT_SIZE];   /* begins with '/' */
    char query[SERVICE_TEXT_SIZE];  /* empty: none */
};

/* Reads "http://…" or "https://…", with a path and a query or without; no user, no fragment. */
bool service_address_read(const char *text, struct service_address *out_address);

/* Whether secrets may be sent there: TLS, this machine, or one of the addresses at which ECS and
 * EKS hand out credentials. */
bool service_address_is_safe(const struct service_address *address);

#endif
