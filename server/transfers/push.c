/* ztserve push: uploads files to a server as models, or the files of a folder as a repository,
 * several concurrently, and resumes interrupted uploads. The parts of a model in several files are
 * sent before their index. */
#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/parallel.h"
#include "client/api_address.h"
#include "client/model_address.h"
#include "client/repository.h"
#include "client/upload.h"
#include "commands/commands.h"
#include "files/model_folder.h"
#include "files/opened_file.h"
#include "http/fields/uri.h"
#include "hub/hub_names.h"
#include "store/store.h"
#include "terminal/interruption.h"
#include "terminal/plain_text.h"
#include "transfers/index_parts.h"
#include "transfers/repository_folder.h"
#include "transfers/transfer_options.h"

struct request {
    char **paths; /* the last operand is the URL */
    int count;
    const char *url;
    bool only_new;
    struct transfer_options given;
    /* The only path is a folder, and the URL names a repository. */
    bool is_repository;
    struct repository_address repository;
    struct repository_folder folder;
};

static uint32_t file_count(const struct request *request)
{
    return request->is_repository ? (uint32_t)request->folder.count : (uint32_t)request->count;
}

static const char *file_path(const struct request *request, uint32_t index)
{
    assert(index < file_count(request));
    return request->is_repository ? request->folder.files[index].path : request->paths[index];
}

struct push {
    const struct request *request;
    struct client *client;
    enum repository_stage stage; /* the files that are sent in this pass */
    pthread_mutex_t lock;        /* guards the rest, and the terminal */
    struct progress_line line;
    int result;
};

/* One file that is being sent. */
struct sent_file {
    struct push *push;
    uint32_t index;
    const char *path;
    uint64_t reported;
    uint64_t counted; /* bytes already counted in the progress line */
};

/* --- progress --- */

static void count_bytes(struct sent_file *file, uint64_t bytes, bool is_work)
{
    struct progress_line *line = &file->push->line;

    file->counted += bytes;
    if (is_work)
        progress_line_advance(line, bytes);
    else
        progress_line_skip(line, bytes);
}

static void report_progress(void *context, uint64_t total, uint64_t before, uint64_t sent)
{
    struct sent_file *file = context;

    (void)total;
    pthread_mutex_lock(&file->push->lock);
    if (file->counted == 0)
        count_bytes(file, before, false);
    /* Bytes of an interrupted request are sent again. */
    count_bytes(file, sent > file->reported ? sent - file->reported : 0, true);
    if (sent > file->reported)
        file->reported = sent;
    pthread_mutex_unlock(&file->push->lock);
}

static void report_waiting(void *context, const struct zt_error *why)
{
    struct sent_file *file = context;

    if (file->push->request->given.reporting.is_quiet)
        return;
    pthread_mutex_lock(&file->push->lock);
    progress_line_erase(&file->push->line);
    command_complain("%s: waiting for the server: %s", file->path, why->message);
    pthread_mutex_unlock(&file->push->lock);
}

/* Returns the total size of all files; unreadable ones count as 0. */
static uint64_t bytes_of(const struct request *request)
{
    uint64_t bytes = 0;
    struct stat info;

    for (uint32_t i = 0; i < file_count(request); i++)
        if (stat(file_path(request, i), &info) == 0 && S_ISREG(info.st_mode))
            bytes += (uint64_t)info.st_size;
    return bytes;
}

/* --- one file --- */

/* Returns the model's name for a file: without folders and extension; NULL without memory. */
static char *model_name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    char model[MODEL_NAME_MAX + 1];
    size_t length = strlen(name);
    size_t longest = 0;

    if (model_path_is_index(zt_text_from(name)) && model_path_name(name, model))
        return strdup(model);
    for (unsigned rank = 0; model_extension(rank) != NULL; rank++) {
        const char *extension = model_extension(rank);
        const size_t size = strlen(extension);

        if (length > size && size > longest && strcasecmp(name + length - size, extension) == 0)
            longest = size;
    }
    return strndup(name, length - longest);
}

/* Names the file that the model had before, in the model's folder. */
static void print_replaced(const char *model, const char *file)
{
    const char *slash = strrchr(model, '/');

    if (file[0] == '\0')
        return;
    fputs("; replaced ", stdout);
    plain_text_write(stdout, model, slash != NULL ? (size_t)(slash - model) + 1 : 0);
    plain_text_write(stdout, file, strlen(file));
}

static void print_result(const struct sent_file *file, const char *name,
                         const struct upload_result *result)
{
    const struct request *request = file->push->request;

    if (request->given.reporting.is_quiet)
        return;
    plain_text_write(stdout, file->path, strlen(file->path));
    printf(": %s ", result->was_there        ? "already exists as"
                    : request->is_repository ? "is the file"
                                             : "is the model");
    plain_text_write(stdout, name, strlen(name));
    printf(", %" PRIu64 " bytes", result->size);
    if (result->resumed > 0)
        printf(", %" PRIu64 " of them received earlier", result->resumed);
    print_replaced(name, result->replaced);
    putchar('\n');
    /* Written before other files' messages on standard error. */
    fflush(stdout);
}

/* Finds where a file of the folder goes, and its path there. */
static enum zt_status place_file(const struct sent_file *file, struct client_place *out_place,
                                 char out_name[WEB_TARGET_SIZE], struct zt_error *error)
{
    const struct request *request = file->push->request;
    const char *name = request->folder.files[file->index].name;

    snprintf(out_name, WEB_TARGET_SIZE, "%s/%s", request->repository.name, name);
    return repository_address_beside(&request->repository, name, "", out_place, error);
}

/* Finds which model a file becomes, and its name. */
static enum zt_status place_model(const struct sent_file *file, struct client_place *out_place,
                                  char out_name[WEB_TARGET_SIZE], struct zt_error *error)
{
    char model_path[WEB_TARGET_SIZE];
    char *own_name = model_name_of(file->path);
    struct client_place place;
    enum zt_status status;
    size_t length = 0;

    if (own_name == NULL)
        return zt_fail_memory(error, "a name");
    status = client_place_read(file->push->request->url, &place, error);
    if (status == ZT_OK)
        status = model_address_of_api(&place.address, own_name, model_path, error);
    if (status == ZT_OK)
        status = client_place_beside(&place, model_path, out_place, error);
    free(own_name);
    if (status != ZT_OK)
        return status;
    (void)percent_decode(api_address_read(&out_place->address).name, out_name, &length);
    out_name[length] = '\0';
    return ZT_OK;
}

static enum zt_status send_file(struct sent_file *file, char name[WEB_TARGET_SIZE],
                                struct upload_result *result, struct zt_error *error)
{
    const struct request *request = file->push->request;
    struct upload upload = {
        .client = file->push->client,
        .name = name,
        .is_file = request->is_repository,
        .base = request->repository.base,
        .path = file->path,
        .only_new = request->only_new,
        .report_progress = report_progress,
        .report_waiting = report_waiting,
        .context = file,
    };
    const enum zt_status status = request->is_repository
                                      ? place_file(file, &upload.target, name, error)
                                      : place_model(file, &upload.target, name, error);

    return status == ZT_OK ? upload_run(&upload, result, error) : status;
}

static void push_file(struct push *push, uint32_t index)
{
    const char *path = file_path(push->request, index);
    struct sent_file file = {.push = push, .index = index, .path = path};
    char name[WEB_TARGET_SIZE];
    struct upload_result result;
    struct zt_error error;
    enum zt_status status;

    zt_error_clear(&error);
    status = send_file(&file, name, &result, &error);
    pthread_mutex_lock(&push->lock);
    progress_line_erase(&push->line);
    if (status == ZT_OK) {
        count_bytes(&file, result.size > file.counted ? result.size - file.counted : 0, false);
        print_result(&file, name, &result);
    } else {
        push->result = failure_complain(path, &error);
    }
    pthread_mutex_unlock(&push->lock);
}

/* --- all files --- */

static enum repository_stage stage_of(const struct request *request, uint32_t index)
{
    if (request->is_repository)
        return repository_stage_of(request->folder.files[index].name);
    /* Only repositories have files that are not models. */
    return model_path_is_index(zt_text_from(request->paths[index])) ? STAGE_INDEXES : STAGE_TENSORS;
}

/* Sends a file if it belongs to this pass. After a failure, no further file is begun. */
static bool push_in_pass(void *context, uint32_t index)
{
    struct push *push = context;
    const char *path = file_path(push->request, index);
    bool proceeds;

    if (stage_of(push->request, index) != push->stage)
        return true;
    pthread_mutex_lock(&push->lock);
    proceeds = push->result == EXIT_DONE;
    if (proceeds) {
        push->line.name = path;
        push->line.file++;
    }
    pthread_mutex_unlock(&push->lock);
    if (proceeds)
        push_file(push, index);
    return proceeds;
}

static int push_all(const struct request *request)
{
    struct push push = {.request = request, .lock = PTHREAD_MUTEX_INITIALIZER};
    const struct parallel_work work = {file_count(request), push_in_pass, &push};
    const unsigned jobs = request->given.client.connections;
    struct client_options options = request->given.client;
    struct zt_error error;

    options.is_patient = true;
    interruption_catch();
    if (client_open(&options, &push.client, &error) != ZT_OK)
        return failure_complain(request->url, &error);
    progress_line_start(&push.line, reporting_progress(&request->given.reporting), "pushing",
                        bytes_of(request));
    push.line.files = file_count(request);
    /* From control-C on, the same command resumes with these files. */
    interruption_note_part(request->paths[0]);
    /* The parts of an index must be published before it. */
    for (int stage = 0; stage < REPOSITORY_STAGES; stage++) {
        push.stage = (enum repository_stage)stage;
        parallel_for_threads("push", jobs, &work);
    }
    interruption_note_part(NULL);
    progress_line_end(&push.line);
    client_close(push.client);
    return command_finish(push.result);
}

/* --- arguments --- */

static int take_option(struct request *request, const struct option_reader *reader)
{
    const enum option_taken taken = transfer_option_take(&request->given, reader);

    if (taken == OPTION_OTHER)
        request->only_new = true;
    return taken == OPTION_REFUSED ? EXIT_USAGE : EXIT_DONE;
}

/* Files with the same model name would replace each other. */
static int refuse_namesakes(const struct request *request)
{
    char *names[2] = {NULL, NULL};
    int result = EXIT_DONE;

    for (int i = 1; i < request->count && result == EXIT_DONE; i++)
        for (int j = 0; j < i && result == EXIT_DONE; j++) {
            names[0] = model_name_of(request->paths[j]);
            names[1] = model_name_of(request->paths[i]);
            if (names[0] != NULL && names[1] != NULL && strcmp(names[0], names[1]) == 0)
                result = command_usage("%s and %s would both be the model %s: push one of them",
                                       request->paths[j], request->paths[i], names[0]);
            free(names[0]);
            free(names[1]);
        }
    return result;
}

/* Like a model after its file, a repository is named after its folder if the URL ends in '/'. */
static int name_repository(struct request *request)
{
    struct repository_address *repository = &request->repository;
    const size_t length = strlen(repository->name);
    char *real = realpath(request->paths[0], NULL);
    const char *slash = real != NULL ? strrchr(real, '/') : NULL;

    if (repository->ends_in_slash && slash != NULL)
        snprintf(repository->name + length, sizeof(repository->name) - length, "%s%s",
                 length > 0 ? "/" : "", slash + 1);
    free(real);
    if (hub_repo_is_valid(zt_text_from(repository->name)))
        return EXIT_DONE;
    return command_usage("%s: a repository must be NAME or OWNER/NAME, of letters, digits, '_', "
                         "'.' and '-'%s",
                         repository->name,
                         repository->ends_in_slash ? "; without the / at the end of the URL, the "
                                                     "folder's name is not added"
                                                   : "");
}

static int read_repository(struct request *request)
{
    struct zt_error error;

    if (request->count > 1)
        return command_usage("push takes files, or one folder");
    if (repository_address_read(request->url, &request->repository, &error) != ZT_OK)
        return command_usage("%s: %s", request->url, error.message);
    return name_repository(request);
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
        return url_refuse(request->url);
    for (int i = 0; i < request->count; i++)
        request->is_repository = request->is_repository || is_folder(request->paths[i]);
    if (request->is_repository)
        return read_repository(request);
    if (request->count > 1 && request->url[strlen(request->url) - 1] != '/')
        return command_usage("%s: for several files the URL must end in /", request->url);
    return refuse_namesakes(request);
}

/* --- the whole --- */

static const char *folder_path_at(const void *list, size_t index)
{
    const struct repository_folder *folder = list;

    assert(index < folder->count);
    return folder->files[index].name;
}

/* Refuses the folder before anything is sent if a sharded model in it is incomplete. */
static int check_indexes(const struct repository_folder *folder)
{
    const struct repository_paths paths = {folder->count, folder_path_at, folder};
    int result = EXIT_DONE;

    for (size_t i = 0; i < folder->count; i++) {
        const struct folder_file *file = &folder->files[i];
        struct zt_error error;

        if (repository_stage_of(file->name) == STAGE_INDEXES &&
            index_parts_check(file->path, file->name, &paths, &error) != ZT_OK)
            result = failure_complain(file->path, &error);
    }
    return result;
}

static int push_folder(struct request *request)
{
    struct repository_folder *folder = &request->folder;
    struct zt_error error;
    int result;

    if (repository_folder_list(request->paths[0], folder, &error) != ZT_OK)
        return failure_complain(request->paths[0], &error);
    result = check_indexes(folder);
    if (result != EXIT_DONE) {
        repository_folder_free(folder);
        return result;
    }
    result = push_all(request);
    if (folder->count == 0 && result == EXIT_DONE) {
        command_complain("%s: the folder has no files", request->paths[0]);
        result = EXIT_BAD;
    }
    if (folder->skipped > 0 && !request->given.reporting.is_quiet)
        printf("%zu hidden or special file%s or folder%s in the folder %s not sent\n",
               folder->skipped, folder->skipped == 1 ? "" : "s", folder->skipped == 1 ? "" : "s",
               folder->skipped == 1 ? "was" : "were");
    if (folder->unfinished > 0 && !request->given.reporting.is_quiet)
        printf("%zu unfinished file%s (.part, .part.json) in the folder %s not sent\n",
               folder->unfinished, folder->unfinished == 1 ? "" : "s",
               folder->unfinished == 1 ? "was" : "were");
    repository_folder_free(folder);
    return command_finish(result);
}

int command_push(int argc, char **argv)
{
    struct request request = {.given = TRANSFER_OPTIONS_DEFAULT};
    struct zt_error error;
    int result = read_arguments(argc, argv, &request);

    if (result == EXIT_DONE)
        result = server_options_check(&request.given.client);
    if (result == EXIT_DONE)
        result = client_options_finish(&request.given.client, &error) == ZT_OK
                     ? request.is_repository ? push_folder(&request) : push_all(&request)
                     : failure_complain(request.url, &error);
    client_options_free(&request.given.client);
    return result;
}
