/* Where credentials come from, in the order in which they are asked. */
#ifndef REMOTE_CREDENTIAL_SOURCES_H
#define REMOTE_CREDENTIAL_SOURCES_H

#include <sys/stat.h>

#include "remote/credential_call.h"
#include "remote/credentials.h"

/* What the environment says, read once; NULL: it does not. */
struct credential_settings {
    char *profile_file; /* with "~/" resolved */
    bool is_file_named; /* it has to exist */
    char *profile;      /* the section */
    bool is_profile_named;
    char *role;
    char *role_session;
    char *token_file; /* of the role */
    struct service_address token_service;
    struct service_address container; /* origin empty: none */
    char *container_token;
    char *container_token_file;
    struct service_address instance; /* origin empty: none is to be asked */
};

/* ZT_ARGUMENT with one line that names the variable. */
enum zt_status credential_settings_read(const char *region, struct credential_settings *out,
                                        struct zt_error *error);
void credential_settings_free(struct credential_settings *settings);

/* A variable of the environment; NULL: not set, or empty. */
const char *credential_variable(const char *name);
/* The file of profiles, and whether a variable names it. False: none. */
bool credential_profile_path(char *out_path, size_t size, bool *out_is_named);

/* Each gets a credential from one source. ZT_NOT_FOUND: nothing speaks of this source; ZT_ARGUMENT,
 * ZT_UNAVAILABLE as for credentials_find. Those of services wait. */
typedef enum zt_status credential_fetch(const struct credential_settings *settings,
                                        struct credential_calls *calls,
                                        struct credential *out_credential, struct zt_error *error);

credential_fetch credential_from_environment;
credential_fetch credential_from_profile;
credential_fetch credential_from_web_identity;
credential_fetch credential_from_container;
credential_fetch credential_from_instance;

#endif
