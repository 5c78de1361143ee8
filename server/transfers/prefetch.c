/* ztserve prefetch: makes a server download a repository from one of its upstreams, and shows the
 * progress. If the server restarts meanwhile, it is asked again, and continues with the files that
 * it has. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/glob.h"
#include "client/json_answer.h"
#include "commands/commands.h"
#include "http/fields/uri.h"
#include "input/json_read.h"
#include "terminal/interruption.h"
#include "transfers/transfer_options.h"

#define SERVER_DEFAULT "http://127.0.0.1:8080"
#define POLL_MS        200
#define NAME_SIZE      256
#define NS_PER_MS      1000000

struct request {
    struct transfer_options given;
    const char *repository;
    const char *server;
    const char *upstream; /* NULL: the first whose globs match */
    const char *revision;
    char chosen[NAME_SIZE]; /* the upstream */
    struct client *client;
    struct client_place place; /* the server */
    struct progress_line line;
    uint64_t files;
    uint64_t files_done;
    bool is_done;
};

/* --- addresses --- */

/* Another path of the server, which may be below a path of a proxy. */
static void begin_path(const struct request *request, struct href *href)
{
    const struct zt_text path = web_address_path(&request->place.address);
    char base[WEB_TARGET_SIZE];
    size_t length = path.length;

    while (length > 0 && path.bytes[length - 1] == '/')
        length--;
    snprintf(base, sizeof(base), "%.*s", (int)length, path.bytes);
    href_init(href);
    href_plain(href, base);
    href_plain(href, "/v1/upstreams");
}

static enum zt_status end_path(const struct request *request, struct href *href,
                               struct client_place *out_place, struct zt_error *error)
{
    const enum zt_status status =
        href->failed ? zt_fail_memory(error, "a URL")
                     : client_place_beside(&request->place, href->text, out_place, error);

    href_free(href);
    return status;
}

static enum zt_status place_prefetch(const struct request *request, struct client_place *out_place,
                                     struct zt_error *error)
{
    struct href href;

    begin_path(request, &href);
    href_plain(&href, "/");
    href_segment(&href, zt_text_from(request->chosen));
    href_plain(&href, "/prefetch?repository=");
    href_segment(&href, zt_text_from(request->repository));
    href_plain(&href, "&revision=");
    href_segment(&href, zt_text_from(request->revision));
    return end_path(request, &href, out_place, error);
}

/* --- choosing the upstream --- */

static bool list_matches(const struct json_t *globs, struct zt_text repository)
{
    for (size_t i = 0; i < json_list_length(globs); i++) {
        struct zt_text glob;
        struct glob_set *set =
            json_list_text(globs, i, &glob) && glob_is_valid(glob) ? glob_set_new(&glob, 1) : NULL;
        const bool matches = set != NULL && glob_set_matches(set, repository);

        glob_set_free(set);
        if (matches)
            return true;
    }
    return json_list_length(globs) == 0;
}

static enum zt_status choose_from(struct request *request, const struct json_t *upstreams,
                                  struct zt_error *error)
{
    for (size_t i = 0; i < json_list_length(upstreams); i++) {
        const struct json_t *upstream = json_list_object(upstreams, i);
        struct zt_text name;

        if (upstream == NULL || json_member_text(upstream, "name", &name) != JSON_FOUND ||
            !list_matches(json_member_list(upstream, "match"), zt_text_from(request->repository)))
            continue;
        snprintf(request->chosen, sizeof(request->chosen), "%.*s", (int)name.length, name.bytes);
        return ZT_OK;
    }
    return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                   json_list_length(upstreams) == 0
                       ? "the server has no upstreams (ztserve serve --upstream URL)"
                       : "no upstream of the server has repositories of this name");
}

static enum zt_status choose_upstream(struct request *request, struct zt_error *error)
{
    struct json_t *answer = NULL;
    struct client_place place;
    struct href href;
    enum zt_status status;

    if (request->upstream != NULL) {
        snprintf(request->chosen, sizeof(request->chosen), "%s", request->upstream);
        return ZT_OK;
    }
    begin_path(request, &href);
    status = end_path(request, &href, &place, error);
    if (status == ZT_OK)
        status = json_answer_ask(request->client, &place, &answer, NULL, error);
    if (status == ZT_OK)
        status = choose_from(request, json_member_list(answer, "upstreams"), error);
    json_object_free(answer);
    return status;
}

/* --- progress --- */

static void show(struct request *request, uint64_t bytes, uint64_t done)
{
    struct progress_line *line = &request->line;

    line->total_bytes = bytes;
    line->file =
        (unsigned)(request->files_done < request->files ? request->files_done + 1 : request->files);
    line->files = (unsigned)request->files;
    progress_line_advance(line, done > line->done_bytes ? done - line->done_bytes : 0);
}

/* Takes a report of the server. */
static enum zt_status take_report(struct request *request, const struct json_t *report,
                                  struct zt_error *error)
{
    struct zt_text state = {"", 0};
    struct zt_text why = {"", 0};
    uint64_t bytes = 0;
    uint64_t done = 0;

    if (json_member_text(report, "state", &state) != JSON_FOUND ||
        json_member_whole(report, "files", &request->files) != JSON_FOUND ||
        json_member_whole(report, "files_done", &request->files_done) != JSON_FOUND ||
        json_member_whole(report, "bytes", &bytes) != JSON_FOUND ||
        json_member_whole(report, "bytes_done", &done) != JSON_FOUND)
        return zt_fail(error, ZT_INVALID, NULL, ZT_NO_OFFSET,
                       "the server's response is not the progress of a prefetch");
    show(request, bytes, done);
    request->is_done = zt_text_equal(state, zt_text_from("done"));
    if (!zt_text_equal(state, zt_text_from("failed")))
        return ZT_OK;
    (void)json_member_text(report, "error", &why);
    return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "%.*s", (int)why.length, why.bytes);
}

static enum zt_status start(struct request *request, struct client_place *place,
                            struct zt_error *error)
{
    struct json_t *report = NULL;
    enum zt_status status = json_answer_start(request->client, place, &report, error);

    if (status == ZT_OK)
        status = take_report(request, report, error);
    json_object_free(report);
    return status;
}

/* A server that was started meanwhile knows of no prefetch. */
static enum zt_status poll_once(struct request *request, struct client_place *place,
                                struct zt_error *error)
{
    struct json_t *report = NULL;
    enum zt_status status = json_answer_ask(request->client, place, &report, NULL, error);

    if (status == ZT_OK)
        status = take_report(request, report, error);
    else if (error->os_error == ENOENT)
        status = start(request, place, error);
    json_object_free(report);
    return status;
}

static void pause_for_a_moment(void)
{
    const struct timespec moment = {.tv_nsec = POLL_MS * NS_PER_MS};

    (void)nanosleep(&moment, NULL);
}

static enum zt_status follow(struct request *request, struct zt_error *error)
{
    struct client_place place;
    enum zt_status status = choose_upstream(request, error);

    if (status == ZT_OK)
        status = place_prefetch(request, &place, error);
    if (status != ZT_OK)
        return status;
    progress_line_start(&request->line, reporting_progress(&request->given.reporting),
                        "prefetching", 0);
    request->line.name = request->repository;
    status = start(request, &place, error);
    while (status == ZT_OK && !request->is_done) {
        pause_for_a_moment();
        status = poll_once(request, &place, error);
    }
    progress_line_end(&request->line);
    return status;
}

static int run(struct request *request)
{
    struct zt_error error;
    enum zt_status status = client_place_read(request->server, &request->place, &error);

    if (status == ZT_OK)
        status = client_open(&request->given.client, &request->client, &error);
    if (status != ZT_OK)
        return failure_complain(request->server, &error);
    interruption_catch();
    status = follow(request, &error);
    client_close(request->client);
    if (status != ZT_OK)
        return failure_complain(request->repository, &error);
    if (!request->given.reporting.is_quiet)
        printf("%s: %" PRIu64 " file%s, %" PRIu64 " bytes from %s, complete and verified\n",
               request->repository, request->files, request->files == 1 ? "" : "s",
               request->line.total_bytes, request->chosen);
    return command_finish(EXIT_DONE);
}

/* --- arguments --- */

/* Returns EXIT_DONE, or the status of a usage error. */
static int take_option(struct request *request, const struct option_reader *reader)
{
    if (option_reader_is(reader, "--server"))
        request->server = reader->value;
    else if (option_reader_is(reader, "--upstream"))
        request->upstream = reader->value;
    else if (option_reader_is(reader, "--revision"))
        request->revision = reader->value;
    else if (transfer_option_take(&request->given, reader) == OPTION_REFUSED)
        return EXIT_USAGE;
    return EXIT_DONE;
}

static int read_arguments(int argc, char **argv, struct request *request)
{
    struct option_reader reader = option_reader_of(argc, argv);
    enum option_found found;
    int status = EXIT_DONE;

    while (status == EXIT_DONE && (found = option_reader_next(&reader)) != OPTION_END)
        if (found == OPTION_WRONG)
            return EXIT_USAGE;
        else if (found == OPTION_NAMED)
            status = take_option(request, &reader);
        else if (request->repository != NULL)
            return command_usage("prefetch takes one repository, such as org/model");
        else
            request->repository = reader.value;
    if (status != EXIT_DONE)
        return status;
    if (request->repository == NULL)
        return command_usage("prefetch needs a repository, such as org/model");
    if (web_address_is_meant(request->repository))
        return command_usage("%s: give the name of the repository, and the server with --server",
                             request->repository);
    if (!web_address_is_meant(request->server))
        return url_refuse(request->server);
    if (request->upstream != NULL && strlen(request->upstream) >= NAME_SIZE)
        return command_usage("--upstream: the name is too long");
    return server_options_check(&request->given.client);
}

int command_prefetch(int argc, char **argv)
{
    struct request request = {
        .given = TRANSFER_OPTIONS_DEFAULT, .server = SERVER_DEFAULT, .revision = "main"};
    struct zt_error error;
    int result = read_arguments(argc, argv, &request);

    request.given.client.is_patient = true;
    if (result == EXIT_DONE)
        result = client_options_finish(&request.given.client, &error) == ZT_OK
                     ? run(&request)
                     : failure_complain(request.server, &error);
    client_options_free(&request.given.client);
    return result;
}
