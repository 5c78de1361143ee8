/* The tokens file. Whatever is accepted is found again by its own proofs, and nothing else is. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "access/grants_state.h"

static void check_entry(const struct grants *grants, const struct entry *entry)
{
    const char *names[2] = {NULL, NULL};
    char *name;

    FUZZ_ASSERT(entry->grant.name[0] != '\0' && strlen(entry->grant.name) <= GRANT_NAME_MAX);
    FUZZ_ASSERT(entry->grant.scope <= SCOPE_ADMIN);
    switch (entry->proof) {
    case PROOF_TOKEN:
        FUZZ_ASSERT(grants_of_token(grants, &entry->is.sha256) == &entry->grant);
        break;
    case PROOF_CERTIFICATE:
        name = strndup(entry->is.name.bytes, entry->is.name.length);
        FUZZ_ASSERT(name != NULL);
        names[0] = name;
        FUZZ_ASSERT(grants_of_certificate(grants, names) == &entry->grant);
        free(name);
        break;
    case PROOF_SUBJECT:
        /* Perhaps by a line above, or nobody: a glob need not match itself. */
        (void)grants_of_subject(grants, entry->is.subject.glob);
        break;
    }
    (void)grant_covers(&entry->grant, (struct zt_text){"acme/model", 10});
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char error[256] = "";
    struct grants *grants =
        grants_parse((struct zt_text){(const char *)bytes, length}, "file", error, sizeof(error));

    FUZZ_ASSERT((grants == NULL) == (error[0] != '\0'));
    FUZZ_ASSERT(grants != NULL || strncmp(error, "auth.tokens: file, line ", 24) == 0);
    for (size_t i = 0; grants != NULL && i < grants->count; i++)
        check_entry(grants, &grants->entries[i]);
    grants_free(grants);
    return 0;
}
