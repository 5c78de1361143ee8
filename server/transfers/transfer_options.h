/* The options that pull and push share. */
#ifndef TRANSFERS_TRANSFER_OPTIONS_H
#define TRANSFERS_TRANSFER_OPTIONS_H

#include "client/client.h"
#include "commands/option_reader.h"

struct transfer_options {
    struct client_options client;
    struct reporting reporting;
};

#define TRANSFER_OPTIONS_DEFAULT         \
    {                                    \
        .client = CLIENT_OPTIONS_DEFAULT \
    }

enum option_taken { OPTION_TAKEN, OPTION_OTHER, OPTION_REFUSED };

/* Takes --token-file, --ca, --timeout, --jobs, --progress and --quiet. REFUSED: it has printed a
 * usage error. */
enum option_taken transfer_option_take(struct transfer_options *options,
                                       const struct option_reader *reader);

#endif
