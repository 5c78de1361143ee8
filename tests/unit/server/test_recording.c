/* Commits of a repository: what is recorded around a change, and going back to a commit. */
#include "model_world.h"

#include "store/staging.h"
#include "store/versions/versions_store.h"
#include "versions/folder_state.h"
#include "versions/recording.h"

static const struct history_repo repo = {.name = "org/model"};

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof(*world));

    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
    strcpy(world->root, "/tmp/zt-test-record-XXXXXX");
    assert_non_null(mkdtemp(world->root));
    config_defaults(&world->config);
    strcpy(world->config.root, world->root);
    world->config.versions.keep = 100;
    world->config.writable = true;
    world_start(world);
    world_command(world, "mkdir -p org/model");
    *state = world;
    return 0;
}

#define WITH_VERSIONS(name) TEST_IN_WORLD(name, set_up, world_tear_down)

static struct history *history_of(struct world *world)
{
    return store_history(world->server.store);
}

/* Replaces files of the folder by new ones, as an upload does: "a=1 b=2 -c" also removes c. Returns
 * the commit. */
static struct history_commit change(struct world *world, const char *changes)
{
    const struct history_note note = {.client = "ci", .title = changes};
    struct history_commit commit;
    struct recording recording;
    char copy[256];
    char *rest = copy;

    snprintf(copy, sizeof(copy), "%s", changes);
    assert_ok(recording_begin(&recording, &world->server, &repo, NULL));
    for (char *word; (word = strsep(&rest, " ")) != NULL;) {
        struct store *store = world->server.store;
        char *content = strchr(word, '=');
        struct staged_file *file;
        char path[128];

        if (content != NULL)
            *content++ = '\0';
        snprintf(path, sizeof(path), "%s/%s", repo.name, content != NULL ? word : word + 1);
        if (content == NULL) {
            assert_ok(store->ops->remove(store, path, &store_expects_anything, NULL));
            store->ops->remove_emptied(store, path, strlen(repo.name));
            continue;
        }
        assert_ok(staging_create(store->staging, strlen(content), &file, NULL));
        assert_ok(staged_file_write_at(file, 0, content, strlen(content), NULL));
        assert_ok(store->ops->publish(store, file, path, &store_expects_anything, NULL));
    }
    assert_ok(recording_end(&recording, &note, &commit, NULL));
    assert_string_equal(commit.title, changes);
    return commit;
}

/* The files of the folder, as "a=1 b=2 ". */
static const char *files_of(struct world *world)
{
    static char text[512];
    struct folder_state state;

    text[0] = '\0';
    assert_ok(folder_state_read(&world->server, &repo, &state, NULL));
    for (size_t i = 0; i < state.count; i++) {
        char path[MODEL_PATH_SIZE];
        struct file_identity identity;
        struct zt_source *source;
        char content[32] = "";

        assert_true(folder_state_path(&repo, state.files[i].path, path));
        assert_ok(
            world->server.store->ops->open(world->server.store, path, &source, &identity, NULL));
        assert_true(zt_source_size(source) < sizeof(content));
        assert_ok(zt_source_read_at(source, 0, content, zt_source_size(source), NULL));
        zt_source_close(source);
        sprintf(text + strlen(text), "%s=%s ", state.files[i].path, content);
    }
    folder_state_free(&state);
    return text;
}

/* The titles of the commits of main, the youngest first, each followed by a comma. */
static const char *titles(struct world *world)
{
    static char text[1024];
    struct history_commit *commits;
    size_t count;

    assert_ok(history_list(history_of(world), &repo,
                           &(struct history_range){zt_text_from(HISTORY_MAIN), UINT64_MAX, 100},
                           &commits, &count, NULL));
    text[0] = '\0';
    for (size_t i = 0; i < count; i++)
        strcat(strcat(text, commits[i].title), ",");
    free(commits);
    return text;
}

static enum zt_status restore(struct world *world, const char *commit, const char *expected)
{
    const struct history_note note = {.title = "back"};
    struct history_commit restored;
    enum zt_status status =
        recording_restore(&world->server, &repo, &(struct recording_target){commit, expected},
                          &note, &restored, NULL);

    if (status == ZT_OK)
        assert_string_equal(restored.id, commit);
    return status;
}

WITH_VERSIONS(every_change_is_a_commit)
{
    const struct history_commit first = change(world, "a=1");
    const struct history_commit second = change(world, "a=2 b=x");

    assert_string_equal(titles(world), "a=2 b=x,a=1,");
    assert_string_equal(second.parent, first.id);
    assert_string_equal(second.client, "ci");
}

WITH_VERSIONS(files_of_other_programs_are_a_commit_before_the_change)
{
    world_command(world, "printf 0 > org/model/found");
    change(world, "a=1");
    world_command(world, "printf 2 > org/model/late");
    change(world, "a=3");
    assert_string_equal(titles(world), "a=3,Found in the folder,a=1,Found in the folder,");
}

WITH_VERSIONS(change_without_note_records_nothing)
{
    struct history_commit commit;
    struct recording recording;

    change(world, "a=1");
    assert_ok(recording_begin(&recording, &world->server, &repo, NULL));
    assert_ok(recording_end(&recording, NULL, &commit, NULL));
    assert_string_equal(commit.id, "");
    assert_string_equal(titles(world), "a=1,");
}

WITH_VERSIONS(owner_folder_has_only_its_own_files)
{
    const struct history_repo owner = {.name = "org"};
    struct folder_state state;

    world_command(world, "printf 1 > org/readme; printf 2 > org/model/a");
    assert_ok(folder_state_read(&world->server, &owner, &state, NULL));
    assert_int_equal(state.count, 1);
    assert_string_equal(state.files[0].path, "readme");
    folder_state_free(&state);
    world_command(world, "printf 1 > org/config.json");
    assert_ok(folder_state_read(&world->server, &owner, &state, NULL));
    assert_int_equal(state.count, 3);
    assert_non_null(folder_state_find(&state, "model/a"));
    folder_state_free(&state);
}

WITH_VERSIONS(restored_commit_has_its_files_again)
{
    const struct history_commit first = change(world, "a=1 b=x sub/c=y");

    change(world, "a=2 d=z -sub/c");
    assert_ok(restore(world, first.id, NULL));
    assert_string_equal(files_of(world), "a=1 b=x sub/c=y ");
    assert_string_equal(titles(world), "back,a=2 d=z -sub/c,a=1 b=x sub/c=y,");
}

WITH_VERSIONS(restoring_can_be_undone)
{
    const struct history_commit first = change(world, "a=1");
    const struct history_commit second = change(world, "a=2 b=x");

    assert_ok(restore(world, first.id, second.id));
    assert_string_equal(files_of(world), "a=1 ");
    assert_ok(restore(world, second.id, first.id));
    assert_string_equal(files_of(world), "a=2 b=x ");
}

WITH_VERSIONS(restoring_needs_the_expected_commit)
{
    const struct history_commit first = change(world, "a=1");

    change(world, "a=2");
    assert_int_equal(restore(world, first.id, first.id), ZT_ARGUMENT);
    assert_int_equal(restore(world, "0123456789012345678901234567890123456789", NULL),
                     ZT_NOT_FOUND);
    assert_string_equal(files_of(world), "a=2 ");
    assert_string_equal(titles(world), "a=2,a=1,");
}

WITH_VERSIONS(restoring_keeps_files_of_other_programs)
{
    const struct history_commit first = change(world, "0=x a=1");
    struct history_found found;

    change(world, "0=y");
    world_command(world, "printf 2 > new && mv new org/model/a && printf 3 > org/model/b");
    assert_ok(history_find(history_of(world), &repo, zt_text_from(HISTORY_MAIN), &found, NULL));
    change(world, "c=4");
    assert_int_equal(restore(world, first.id, NULL), ZT_NOT_FOUND);
    assert_string_equal(files_of(world), "0=y a=2 b=3 c=4 ");
}

WITH_VERSIONS(file_takes_the_place_of_a_folder_and_back)
{
    const struct history_commit file = change(world, "a=1");
    const struct history_commit folder = change(world, "-a a/b=2");

    assert_ok(restore(world, file.id, NULL));
    assert_string_equal(files_of(world), "a=1 ");
    assert_ok(restore(world, folder.id, NULL));
    assert_string_equal(files_of(world), "a/b=2 ");
}

WITH_VERSIONS(file_is_restored_from_another_file_with_its_bytes)
{
    const struct history_commit first = change(world, "a=1 b=1");

    world_command(world, "rm org/model/a");
    change(world, "c=2");
    assert_ok(restore(world, first.id, NULL));
    assert_string_equal(files_of(world), "a=1 b=1 ");
}

WITH_VERSIONS(restoring_hashes_no_file)
{
    const struct history_commit first = change(world, "a=1 b=x");

    change(world, "a=2 -b c=3");
    /* Nothing is hashed while the server is shutting down. */
    atomic_store(&world->server.draining, true);
    assert_ok(restore(world, first.id, NULL));
    atomic_store(&world->server.draining, false);
    assert_string_equal(files_of(world), "a=1 b=x ");
}

WITH_VERSIONS(restored_model_is_served_at_once_with_its_digest)
{
    struct generation *model;
    struct history_commit first;
    uint8_t sha256[32];

    world_add(world, "org/model/m.zt", true);
    first = change(world, "a=1");
    change(world, "-m.zt");
    generation_release(catalog_update(world->server.catalog, "org/model/m.zt"));
    world_load(world);
    assert_null(world_find(world, "org/model/m"));
    assert_ok(restore(world, first.id, NULL));
    model = world_find(world, "org/model/m");
    assert_non_null(model);
    assert_true(file_hashes_find(world->server.hashes, model->path, &model->identity, sha256));
    generation_release(model);
}
