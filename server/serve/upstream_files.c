/* A token file has the token in its first line, as for the option --token-file. */
#include "serve/upstream_files.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/glob.h"
#include "base/log.h"
#include "config/upstreams.h"
#include "input/text_file.h"

#define KEY_SIZE (CONFIG_UPSTREAM_NAME_SIZE + 32)
/* Longer than the tokens of all services. */
#define TOKEN_MOST ((size_t)4096)

static void name_key(const struct config_upstream *upstream, const char *key, char out[KEY_SIZE])
{
    snprintf(out, KEY_SIZE, "upstream %s: %s", upstream->name, key);
}

static bool check_globs(const struct config_upstream *upstream, char *error, size_t error_size)
{
    const char *position = upstream->match;
    struct zt_text glob;
    const char *word;

    while ((word = config_list_next(&position, &glob.length)) != NULL) {
        glob.bytes = word;
        if (!glob_is_valid(glob)) {
            snprintf(error, error_size, "upstream %s: match: \"%.*s\" is not a valid glob",
                     upstream->name, (int)(glob.length < 100 ? glob.length : 100), word);
            return false;
        }
    }
    return true;
}

static bool check_ca(const struct config_upstream *upstream, char *error, size_t error_size)
{
    if (upstream->ca[0] == '\0' || access(upstream->ca, R_OK) == 0)
        return true;
    snprintf(error, error_size, "upstream %s: ca: %s: %s", upstream->name, upstream->ca,
             strerrordesc_np(errno));
    return false;
}

/* Cuts the text down to the token in its first line. Returns false if there is none, or if it has
 * characters that no header field can have. */
static bool cut_out_token(char *text)
{
    const size_t start = strspn(text, " \t");
    const size_t length = strcspn(text + start, " \t\r\n");

    memmove(text, text + start, length);
    explicit_bzero(text + length, strlen(text) - length);
    for (size_t i = 0; i < length; i++)
        if (text[i] < '!' || text[i] > '~')
            return false;
    return length > 0 && length <= TOKEN_MOST;
}

static bool load_token(const struct config_upstream *upstream, char **out_token, char *error,
                       size_t error_size)
{
    struct text_file file;
    char key[KEY_SIZE];

    *out_token = NULL;
    if (upstream->token_file[0] == '\0')
        return true;
    name_key(upstream, "token_file", key);
    if (!text_file_read(key, upstream->token_file, &file, error, error_size))
        return false;
    if (!cut_out_token(file.text)) {
        snprintf(error, error_size, "%s: %s has no token in its first line", key,
                 upstream->token_file);
        text_file_free(&file);
        return false;
    }
    /* The rest of the file was overwritten. */
    *out_token = file.text;
    return true;
}

bool upstream_tokens_load(const struct config *config, struct upstream_tokens *out_tokens,
                          char *error, size_t error_size)
{
    struct upstream_tokens tokens = {{NULL}};
    bool done = true;

    assert(config->upstream_count <= CONFIG_UPSTREAMS_MAX);
    for (unsigned i = 0; done && i < config->upstream_count; i++) {
        const struct config_upstream *upstream = &config->upstreams[i];

        done = check_globs(upstream, error, error_size) && check_ca(upstream, error, error_size) &&
               load_token(upstream, &tokens.tokens[i], error, error_size);
    }
    if (done)
        *out_tokens = tokens;
    else
        upstream_tokens_free(&tokens);
    return done;
}

void upstream_tokens_free(struct upstream_tokens *tokens)
{
    for (unsigned i = 0; i < CONFIG_UPSTREAMS_MAX; i++) {
        struct text_file file = {.text = tokens->tokens[i]};

        if (file.text == NULL)
            continue;
        file.length = strlen(file.text);
        text_file_free(&file);
        tokens->tokens[i] = NULL;
    }
}

/* Returns a variable that most programs take a proxy from, or NULL. */
static const char *proxy_variable(void)
{
    static const char *const names[] = {"https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy",
                                        "ALL_PROXY"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (getenv(names[i]) != NULL)
            return names[i];
    return NULL;
}

void upstream_tokens_warn(const struct config *config)
{
    const char *variable = proxy_variable();

    for (unsigned i = 0; i < config->upstream_count; i++) {
        const struct config_upstream *upstream = &config->upstreams[i];
        struct stat status;

        if (variable != NULL && upstream->proxy[0] == '\0')
            log_write(LOG_LEVEL_INFO,
                      "upstream %s: %s is ignored; to use a proxy, set upstreams[].proxy",
                      upstream->name, variable);
        if (config_upstream_exposes_token(upstream))
            log_write(LOG_LEVEL_WARN,
                      "upstream %s: the token is sent without encryption; use https",
                      upstream->name);
        if (upstream->token_file[0] != '\0' && stat(upstream->token_file, &status) == 0 &&
            (status.st_mode & S_IROTH) != 0)
            log_write(LOG_LEVEL_WARN,
                      "upstream %s: token_file: %s can be read by every user of this machine",
                      upstream->name, upstream->token_file);
    }
}
