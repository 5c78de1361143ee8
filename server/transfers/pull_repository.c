/* The server chooses the names of the files, so no name may lead out of the folder. The list has
 * only clean relative paths (client/repository.h). Links with the name of a subfolder are refused
 * (pull_path_make_folders), and links with the name of a file are replaced. */
#include "transfers/pull_repository.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "commands/commands.h"
#include "download/part_file.h"
#include "download/replaceable.h"
#include "terminal/plain_text.h"
#include "transfers/index_parts.h"
#include "transfers/pull_paths.h"
#include "transfers/pulled_file.h"

/* --- one file --- */

static bool is_empty_file(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_size == 0;
}

/* No range of an empty file can be requested. */
static enum zt_status make_empty(const char *path, bool is_forced, struct zt_error *error)
{
    struct part_file file;
    enum zt_status status;

    if (is_empty_file(path))
        return ZT_OK;
    if (!is_forced && replaceable_check(path, error) != ZT_OK)
        return error->status;
    status = part_file_init(&file, path, is_forced, error);
    if (status == ZT_OK)
        status = part_file_open(&file, error);
    if (status == ZT_OK) {
        status = part_file_truncate(&file, 0, error);
        if (status == ZT_OK)
            status = part_file_publish(&file, error);
        part_file_close(&file);
    }
    part_file_free(&file);
    return status;
}

static int pull_empty(const struct pull *pull, const char *path)
{
    struct zt_error error;

    zt_error_clear(&error);
    if (make_empty(path, pull->is_forced, &error) != ZT_OK)
        return failure_complain(path, &error);
    if (!pull->given->reporting.is_quiet) {
        plain_text_write(stdout, path, strlen(path));
        puts(": 0 bytes");
    }
    return EXIT_DONE;
}

static int pull_to(struct pull *pull, const struct repository *repository,
                   const struct repository_file *file, const char *path)
{
    char url[WEB_ORIGIN_SIZE + WEB_TARGET_SIZE];
    struct client_place place;
    const struct pulled_file pulled = {.place = &place,
                                       .url = url,
                                       .path = path,
                                       .may_be_other = true,
                                       .sha256 = file->has_sha256 ? file->sha256 : NULL};
    struct zt_error error;

    if (pull_path_make_folders(path, file->path, &error) != ZT_OK)
        return failure_complain(path, &error);
    if (file->size == 0)
        return pull_empty(pull, path);
    if (repository_file_place(repository, file, &place, &error) != ZT_OK)
        return failure_complain(path, &error);
    snprintf(url, sizeof(url), "%s%s", place.address.origin, place.address.target);
    return pull_file(pull, &pulled);
}

/* --- all files --- */

/* Returns the folder without a '/' at the end; NULL without memory. */
static char *name_folder(const struct repository_pull *wanted)
{
    const char *name = wanted->repository->address.name;
    const char *slash = strrchr(name, '/');
    char *folder = strdup(wanted->output != NULL ? wanted->output
                          : slash != NULL        ? slash + 1
                                                 : name);

    for (size_t end = folder != NULL ? strlen(folder) : 0; end > 1 && folder[end - 1] == '/'; end--)
        folder[end - 1] = '\0';
    return folder;
}

static int pull_all(const struct repository_pull *wanted, const char *folder)
{
    const struct repository *repository = wanted->repository;
    struct pull pull = {
        .given = wanted->given, .is_forced = wanted->is_forced, .local = wanted->local};
    int result = EXIT_DONE;

    for (size_t i = 0; i < repository->count && result == EXIT_DONE; i++) {
        const struct repository_file *file = &repository->files[i];
        char *path;

        assert(store_path_is_served(zt_text_from(file->path)));
        if (asprintf(&path, "%s/%s", folder, file->path) < 0) {
            command_complain("%s: out of memory", file->path);
            return EXIT_BAD;
        }
        pull.line.file = (unsigned)i + 1;
        pull.line.files = (unsigned)repository->count;
        result = pull_to(&pull, repository, file, path);
        free(path);
    }
    return result;
}

/* Lists the repository again: its files may have changed after they were listed, and belong to
 * different versions then. */
static enum zt_status check_version(const struct repository_pull *wanted, struct zt_error *error)
{
    struct repository now = {.count = 0};
    struct client *client = NULL;
    enum zt_status status;

    if (wanted->repository->commit != NULL)
        return ZT_OK;
    status = client_open(&wanted->given->client, &client, error);
    if (status == ZT_OK)
        status = repository_find(client, &wanted->repository->address, &now, error);
    if (status == ZT_OK && !repository_is_same(wanted->repository, &now))
        status = zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET,
                         "the repository has changed while it was pulled: run the same command "
                         "again to fetch what has changed");
    repository_free(&now);
    client_close(client);
    return status;
}

static const char *repository_path_at(const void *list, size_t index)
{
    const struct repository *repository = list;

    assert(index < repository->count);
    return repository->files[index].path;
}

static int check_index(const struct repository *repository, const char *folder, const char *name)
{
    const struct repository_paths paths = {repository->count, repository_path_at, repository};
    char *path;
    struct zt_error error;
    int result = EXIT_DONE;

    if (asprintf(&path, "%s/%s", folder, name) < 0) {
        command_complain("%s: out of memory", name);
        return EXIT_BAD;
    }
    if (index_parts_check(path, name, &paths, &error) != ZT_OK)
        result = failure_complain(path, &error);
    free(path);
    return result;
}

/* Reports sharded models that are incomplete on the server. Their files stay here: the next pull
 * adds what the server has got meanwhile. */
static int check_indexes(const struct repository *repository, const char *folder)
{
    int result = EXIT_DONE;

    for (size_t i = 0; i < repository->count; i++) {
        const char *name = repository->files[i].path;

        if (repository_stage_of(name) == STAGE_INDEXES &&
            check_index(repository, folder, name) != EXIT_DONE)
            result = EXIT_BAD;
    }
    return result;
}

static void print_total(const struct repository_pull *wanted, const char *folder)
{
    const struct repository *repository = wanted->repository;

    if (wanted->given->reporting.is_quiet)
        return;
    if (repository->unfinished > 0)
        printf("%zu unfinished file%s (.part, .part.json) of the repository %s not downloaded\n",
               repository->unfinished, repository->unfinished == 1 ? "" : "s",
               repository->unfinished == 1 ? "was" : "were");
    plain_text_write(stdout, folder, strlen(folder));
    printf(": %zu file%s of the repository ", repository->count, repository->count == 1 ? "" : "s");
    plain_text_write(stdout, repository->address.name, strlen(repository->address.name));
    putchar('\n');
}

/* --- refusals --- */

#define SHOWN_MOST 8

static bool has_tensor_extension(const char *path)
{
    for (unsigned rank = 0; model_extension(rank) != NULL; rank++)
        if (model_extension_ends(zt_text_from(path), rank))
            return true;
    return false;
}

static bool is_known(const struct zt_text *folders, unsigned count, struct zt_text folder)
{
    for (unsigned i = 0; i < count; i++)
        if (zt_text_equal(folders[i], folder))
            return true;
    return false;
}

/* Finds the folders in a repository, until SHOWN_MOST + 1 are known. Returns 0 if it has a file
 * outside them. */
static unsigned find_folders(const struct repository *repository,
                             struct zt_text folders[SHOWN_MOST + 1])
{
    unsigned count = 0;

    for (size_t i = 0; i < repository->count; i++) {
        const char *path = repository->files[i].path;
        const struct zt_text folder = {path, strcspn(path, "/")};

        assert(folder.length > 0);
        if (path[folder.length] == '\0')
            return 0;
        if (count <= SHOWN_MOST && !is_known(folders, count, folder))
            folders[count++] = folder;
    }
    return count;
}

static int refuse_owner(const struct repository_pull *wanted)
{
    struct zt_text folders[SHOWN_MOST + 1];
    const char *owner = wanted->repository->address.name;
    const unsigned count = find_folders(wanted->repository, folders);
    char *list = NULL;
    size_t size = 0;
    FILE *text;
    int result;

    if (count < 2 || wanted->repository->address.ends_in_slash || strchr(owner, '/') != NULL)
        return EXIT_DONE;
    text = open_memstream(&list, &size);
    if (text != NULL) {
        for (unsigned i = 0; i < count && i < SHOWN_MOST; i++)
            fprintf(text, "%s%s/%.*s", i > 0 ? ", " : "", owner, (int)folders[i].length,
                    folders[i].bytes);
        fclose(text);
    }
    result = command_usage("%s has several repositories: %s%s; add the name of one to the URL, or "
                           "/ to pull them all",
                           owner, list != NULL ? list : "", count > SHOWN_MOST ? " and more" : "");
    free(list);
    return result;
}

static int refuse(const struct repository_pull *wanted)
{
    if (wanted->output != NULL && has_tensor_extension(wanted->output) &&
        !pull_path_is_folder(wanted->output))
        return command_usage("%s is a repository: use -o FOLDER/, or %s/model for one model",
                             wanted->repository->address.name, wanted->url);
    return refuse_owner(wanted);
}

/* --- the whole --- */

static int pull_into(const struct repository_pull *wanted, const char *folder)
{
    struct zt_error error;
    int result;

    zt_error_clear(&error);
    if (pull_path_make_folder(folder, &error) != ZT_OK)
        return failure_complain(folder, &error);
    result = pull_all(wanted, folder);
    if (result == EXIT_DONE && check_version(wanted, &error) != ZT_OK)
        result = failure_complain(wanted->repository->address.name, &error);
    if (result == EXIT_DONE)
        result = check_indexes(wanted->repository, folder);
    if (result == EXIT_DONE)
        print_total(wanted, folder);
    return result;
}

int pull_repository(const struct repository_pull *wanted)
{
    int result = refuse(wanted);
    char *folder;

    if (result != EXIT_DONE)
        return result;
    folder = name_folder(wanted);
    if (folder == NULL) {
        command_complain("out of memory");
        return EXIT_BAD;
    }
    result = pull_into(wanted, folder);
    free(folder);
    return result;
}
