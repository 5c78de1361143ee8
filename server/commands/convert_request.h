/* The arguments of `convert`. */
#ifndef COMMANDS_CONVERT_REQUEST_H
#define COMMANDS_CONVERT_REQUEST_H

#include "commands/option_reader.h"
#include "commands/rank_share.h"
#include "zt/convert.h"

struct conversion_request {
    const char *in;
    const char *out;
    const char *to; /* NULL: by the extension of out */
    bool to_f32;
    bool zstd;
    int zstd_level;
    uint64_t part_bytes; /* 0: one file */
    enum zt_target target;
    unsigned jobs;     /* 0: as many as there are processors */
    bool keeps_output; /* an existing file is not replaced */
    struct share_wish share;
    struct reporting reporting;
};

/* Returns EXIT_DONE, or EXIT_USAGE after a line with the reason. request is cleared. */
int convert_request_read(int argc, char **argv, struct conversion_request *request);

#endif
