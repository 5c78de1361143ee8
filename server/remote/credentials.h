/* Credentials of AWS and its like, found where its tools find them (object-store.md): environment,
 * profile file, web identity, container, instance, anonymous. Temporary ones are renewed in the
 * background, five minutes before they expire. */
#ifndef REMOTE_CREDENTIALS_H
#define REMOTE_CREDENTIALS_H

#include <stdbool.h>
#include <stdint.h>

#include "zt/status.h"

#define CREDENTIALS_KEY_SIZE    129
#define CREDENTIALS_SECRET_SIZE 257
#define CREDENTIALS_TOKEN_SIZE  4097

struct remote;
struct credentials;

struct credential {
    char key[CREDENTIALS_KEY_SIZE]; /* empty: anonymous */
    char secret[CREDENTIALS_SECRET_SIZE];
    char token[CREDENTIALS_TOKEN_SIZE];
    int64_t expires_s; /* 0: never */
};

/* How long the thread that renews waits, in milliseconds. */
struct credentials_pace {
    int64_t check_interval_ms; /* between looks at the clock, and at the file of profiles */
    int64_t again_ms;          /* after a failure; doubled each time */
    int64_t just_renewed_ms;   /* a refusal so soon after a renewal is one of those before */
    int64_t refusal_every_ms;  /* a refusal that renewing does not mend must not renew for ever */
};

/* That of a server. */
extern const struct credentials_pace credentials_usual_pace;

/* Chooses the source by environment and files, and gets the first credential; may wait some seconds
 * for a service. ZT_UNAVAILABLE: the chosen service does not answer; *out_credentials is set all
 * the same, and asking goes on in the background. ZT_ARGUMENT: what was found makes no sense (a
 * message for the person who starts the program). ZT_OK also without any: an instance's are then
 * looked for again in the background. region: for the token service's address. pace:
 * credentials_usual_pace; another one only in tests. It is borrowed. */
enum zt_status credentials_find(struct remote *remote, const char *region,
                                const struct credentials_pace *pace,
                                struct credentials **out_credentials, struct zt_error *error);
/* Ends renewing, without waiting for a service. Before remote_stop; what was signed with them may
 * still be on its way. Takes NULL. */
void credentials_stop(struct credentials *credentials);
/* The same if need be. After remote_stop if a signer uses them. Takes NULL. */
void credentials_free(struct credentials *credentials);

/* The credential of the moment. Never waits; renewing goes on in the background. False: an expired
 * one only. Any thread. */
bool credentials_get(struct credentials *credentials, struct credential *out_credential);

/* The service refused what credentials_get gave: gets others if the source can have others. True:
 * there is a new one already, or one is on its way. Any thread, never waits. */
bool credentials_refused(struct credentials *credentials);

/* "environment", "profile", "web identity", "container", "instance", "anonymous". */
const char *credentials_source(struct credentials *credentials);

/* The files that are read again, for the sandbox: calls visit with each. */
void credentials_files(void (*visit)(void *context, const char *path), void *context);

#endif
