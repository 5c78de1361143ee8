/* ztserve push: sends files to a server to be its models, and takes up what was interrupted. Parts
 * of a model in several files go before their index. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/model_address.h"
#include "client/upload.h"
#include "commands/commands.h"
#include "files/opened_file.h"
#include "http/fields/uri.h"
#include "store/store.h"
#include "terminal/plain_text.h"
#include "transfers/transfer_options.h"

#define MODELS_LENGTH strlen("/v1/models/")

struct request {
    char **paths; /* the last operand is the URL */
    int count;
    const char *url;
    bool only_new;
    struct transfer_options given;
    struct client_options options;
};

struct push {
    const struct request *request;
    struct client *client;
    struct progress_line line;
    uint64_t told;
};

static void tell(void *context, uint64_t total, uint64_t before, uint64_t sent)
{
    struct push *push = context;

    push->line.total_bytes = total;
    if (push->line.done_bytes == 0 && before > 0)
        progress_line_skip(&push->line, before);
    /* What broke off is sent again. */
    progress_line_advance(&push->line, sent > push->told ? sent - push->told : 0);
    if (sent > push->told)
        push->told = sent;
}

/* The name of the model that a file is: without folders and extension; NULL without memory. */
static char *model_name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    size_t length = strlen(name);
    size_t longest = 0;

    for (unsigned rank = 0; model_extension(rank) != NULL; rank++) {
        const char *extension = model_extension(rank);
        const size_t size = strlen(extension);

        if (length > size && size > longest && strcasecmp(name + length - size, extension) == 0)
            longest = size;
    }
    return strndup(name, length - longest);
}

static void print_result(const struct push *push, const char *path, const char *name,
                         const struct upload_result *result)
{
    if (push->request->given.reporting.is_quiet)
        return;
    plain_text_write(stdout, path, strlen(path));
    printf(": %s ", result->was_there ? "is there already as" : "is the model");
    plain_text_write(stdout, name, strlen(name));
    printf(", %" PRIu64 " bytes", result->size);
    if (result->resumed > 0)
        printf(", %" PRIu64 " of them from before", result->resumed);
    putchar('\n');
}

static int push_to(struct push *push, const char *path, const struct client_place *model)
{
    const struct zt_text raw = zt_text_from(model->address.target + MODELS_LENGTH);
    const struct request *request = push->request;
    char name[WEB_TARGET_SIZE];
    struct upload_result result;
    struct zt_error error;
    enum zt_status status;
    size_t length = 0;
    const struct upload upload = {
        .client = push->client,
        .model = *model,
        .name = name,
        .path = path,
        .only_new = request->only_new,
        .tell = tell,
        .context = push,
    };
    const unsigned file = push->line.file;

    (void)percent_decode(raw, name, &length);
    name[length] = '\0';
    push->told = 0;
    progress_line_start(&push->line, reporting_progress(&request->given.reporting), "pushing", 0);
    push->line.name = path;
    push->line.file = file;
    push->line.files = (unsigned)request->count;
    zt_error_clear(&error);
    status = upload_run(&upload, &result, &error);
    progress_line_end(&push->line);
    if (status != ZT_OK)
        return failure_complain(path, &error);
    print_result(push, path, name, &result);
    return EXIT_DONE;
}

static int push_file(struct push *push, const char *path)
{
    char model_path[WEB_TARGET_SIZE];
    char *name = model_name_of(path);
    struct client_place place;
    struct client_place model;
    struct zt_error error;
    enum zt_status status;

    if (name == NULL) {
        command_complain("%s: out of memory", path);
        return EXIT_BAD;
    }
    status = client_place_read(push->request->url, &place, &error);
    if (status == ZT_OK)
        status = model_address_of_api(&place.address, name, model_path, &error);
    if (status == ZT_OK)
        status = client_place_beside(&place, model_path, &model, &error);
    free(name);
    return status == ZT_OK ? push_to(push, path, &model) : failure_complain(path, &error);
}

static int push_all(const struct request *request)
{
    struct push push = {.request = request};
    struct zt_error error;
    int result = EXIT_DONE;

    if (client_open(&request->options, &push.client, &error) != ZT_OK)
        return failure_complain(request->url, &error);
    /* An index that comes last finds its parts. */
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < request->count && result == EXIT_DONE; i++) {
            const char *path = request->paths[i];

            if (model_address_is_index(zt_text_from(path)) != (pass == 1))
                continue;
            push.line.file++;
            result = push_file(&push, path);
        }
    client_close(push.client);
    return command_finish(result);
}

/* --- arguments --- */

static int take_option(struct request *request, const struct option_reader *reader)
{
    const enum option_taken taken = transfer_option_take(&request->given, reader);

    if (taken == OPTION_OTHER)
        request->only_new = true;
    return taken == OPTION_REFUSED ? EXIT_USAGE : EXIT_DONE;
}

static int read_arguments(int argc, char **argv, struct request *request)
{
    struct option_reader reader = option_reader_of(argc, argv);
    enum option_found found;
    int status = EXIT_DONE;

    request->paths = argv + 1;
    while (status == EXIT_DONE && (found = option_reader_next(&reader)) != OPTION_END)
        if (found == OPTION_WRONG)
            return EXIT_USAGE;
        else if (found == OPTION_NAMED)
            status = take_option(request, &reader);
        else
            request->paths[request->count++] = reader.value;
    if (status != EXIT_DONE)
        return status;
    if (request->count < 2)
        return command_usage("push needs a file and a URL");
    request->url = request->paths[--request->count];
    if (!web_address_is_meant(request->url))
        return command_usage("%s: this is no URL of http or https", request->url);
    if (request->count > 1 && request->url[strlen(request->url) - 1] != '/')
        return command_usage("%s: for several files the URL must end in /", request->url);
    return EXIT_DONE;
}

int command_push(int argc, char **argv)
{
    struct request request = {.given = TRANSFER_OPTIONS_DEFAULT};
    struct zt_error error;
    int result = read_arguments(argc, argv, &request);

    if (result == EXIT_DONE)
        result = client_settings_finish(&request.given.settings, &request.options, &error) == ZT_OK
                     ? push_all(&request)
                     : failure_complain(request.url, &error);
    client_settings_free(&request.given.settings);
    return result;
}
