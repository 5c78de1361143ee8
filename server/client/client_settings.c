#include "client/client_settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOKEN_MOST ((size_t)16384)

void client_settings_free(struct client_settings *settings)
{
    free(settings->token);
}

/* Reads the first line, without surrounding spaces. */
static enum zt_status read_token(const char *path, char **out_token, struct zt_error *error)
{
    FILE *file = fopen(path, "re");
    char *line = malloc(TOKEN_MOST);
    size_t start;

    if (file == NULL || line == NULL) {
        const int number = errno;

        free(line);
        if (file != NULL)
            fclose(file);
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "the token cannot be read from %s: %s",
                       path, strerrordesc_np(number));
    }
    if (fgets(line, (int)TOKEN_MOST, file) == NULL)
        line[0] = '\0';
    fclose(file);
    start = strspn(line, " \t");
    line[start + strcspn(line + start, " \t\r\n")] = '\0';
    memmove(line, line + start, strlen(line + start) + 1);
    *out_token = line;
    return line[0] != '\0' ? ZT_OK
                           : zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                                     "%s has no token in its first line", path);
}

enum zt_status client_settings_finish(struct client_settings *settings,
                                      struct client_options *out_options, struct zt_error *error)
{
    const char *token = getenv("ZTSERVE_TOKEN");

    if (settings->token_file != NULL) {
        enum zt_status status = read_token(settings->token_file, &settings->token, error);

        if (status != ZT_OK)
            return status;
        token = settings->token;
    }
    *out_options = (struct client_options){
        .token = token != NULL && token[0] != '\0' ? token : NULL,
        .ca_file = settings->ca_file,
        .connections = settings->jobs,
        .stall_s = settings->stall_s,
    };
    return ZT_OK;
}
