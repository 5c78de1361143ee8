/* The user's settings for requests: the token, trusted certificates, and the number of concurrent
 * requests. */
#ifndef CLIENT_CLIENT_SETTINGS_H
#define CLIENT_CLIENT_SETTINGS_H

#include "client/client.h"

#define CLIENT_JOBS_DEFAULT 4
#define CLIENT_JOBS_MAX     64

struct client_settings {
    const char *token_file; /* NULL: the token is in ZTSERVE_TOKEN, if set */
    const char *ca_file;
    unsigned stall_s;
    unsigned jobs;
    char *token; /* the token; freed by client_settings_free */
};

#define CLIENT_SETTINGS_DEFAULT                    \
    {                                              \
        .stall_s = 30, .jobs = CLIENT_JOBS_DEFAULT \
    }

/* Reads the token, and fills in options for clients, whose texts belong to the settings. Returns
 * ZT_IO or ZT_ARGUMENT. */
enum zt_status client_settings_finish(struct client_settings *settings,
                                      struct client_options *out_options, struct zt_error *error);
void client_settings_free(struct client_settings *settings);

#endif
