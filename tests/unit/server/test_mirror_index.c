/* Mirrored repositories: which paths are theirs, what is kept of their commits in memory and on
 * disk, and how much. */
#include "support.h"
#include "tests.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "store/mirror/mirror_index.h"
#include "store/mirror/mirror_name.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"

static const char *const urls[] = {"https://hub.example", "http://other.example"};
static char folder[64];
static struct mirror_index mirrored;

static void open_index(void)
{
    mirror_index_open(&mirrored, folder, urls, 2);
}

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/zt-mirror-index-XXXXXX");
    assert_non_null(mkdtemp(folder));
    open_index();
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    mirror_index_close(&mirrored);
    run_in(folder, "rm -f *");
    return rmdir(folder);
}

AROUND_EACH_TEST(make_folder, remove_folder)

/* A commit of one digit, with two files; size tells the bytes of "a" apart. */
static struct mirror_version *version_of(unsigned number, uint64_t size,
                                         const struct mirror_version *before)
{
    struct upstream_file files[2] = {{"a.gguf", size, UPSTREAM_SHA256, {1}, ""},
                                     {"b/config.json", 3, UPSTREAM_NO_DIGEST, {0}, ""}};
    struct upstream_listing listing = {.count = 2, .files = files};
    struct mirror_version *version;

    snprintf(listing.commit, sizeof(listing.commit), "%040x", number);
    version = mirror_version_make(&listing, 1000 + number, before);
    assert_non_null(version);
    return version;
}

/* Puts a commit into a repository of the second upstream. */
static void put(const char *name, struct mirror_version *version, bool is_current)
{
    struct mirror_repository *repository;

    pthread_mutex_lock(&mirrored.lock);
    repository = mirror_index_add(&mirrored, name, 1);
    assert_non_null(repository);
    mirror_index_put(&mirrored, repository, version, is_current);
    pthread_mutex_unlock(&mirrored.lock);
}

/* The commit's number, with a reference; -1: it is not known. commit: NULL is the current one. */
static int known(const char *name, const char *commit, struct mirror_version **out_version)
{
    const struct mirror_repository *repository;
    struct mirror_version *version = NULL;

    pthread_mutex_lock(&mirrored.lock);
    repository = mirror_index_find(&mirrored, zt_text_from(name));
    if (repository != NULL)
        version = commit == NULL ? mirror_repository_current(repository)
                                 : mirror_repository_version(repository, zt_text_from(commit));
    if (version != NULL && out_version != NULL)
        *out_version = mirror_version_hold(version);
    pthread_mutex_unlock(&mirrored.lock);
    return version != NULL ? (int)strtol(version->commit, NULL, 16) : -1;
}

static void open_again(void)
{
    mirror_index_close(&mirrored);
    open_index();
}

/* --- names --- */

TEST(only_names_that_a_hub_has_are_asked_for)
{
    static const struct {
        const char *name;
        bool is_valid;
    } names[] = {
        {"gpt2", true},
        {"acme/tiny", true},
        {"acme/tiny-1.5_b", true},
        {"acme/tiny/x", false},
        {"", false},
        {"acme/", false},
        {"/tiny", false},
        {".hidden", false},
        {"acme/.hidden", false},
        {"acme/a--b", false},
        {"acme/a..b", false},
        {"acme/-a", false},
        {"acme/a.git", false},
        {"acme/a b", false},
        {"acme/\xc3\xa9", false},
        {"api/models", false},
        {"api", false},
        {"datasets/acme", false},
        {"spaces/acme", false},
        {"models/acme", false},
        {"models--acme--tiny", false},
        {"acme/tiny?x", false},
        {"acme/%2e%2e", false},
        {"acme@host/x", false},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (mirror_repository_is_valid(zt_text_from(names[i].name)) != names[i].is_valid)
            fail_msg("%s", names[i].name);
}

TEST(a_path_names_a_repository_a_commit_and_a_file)
{
    static const struct {
        const char *path;
        unsigned parts;
        const char *repository; /* NULL: none */
        const char *commit;
        const char *file;
    } paths[] = {
        {"acme/tiny/a/b.gguf", 2, "acme/tiny", "", "a/b.gguf"},
        {"acme/tiny", 2, "acme/tiny", "", NULL},
        {"acme/tiny", 1, "acme", "", "tiny"},
        {"acme", 2, NULL, NULL, NULL},
        {"models--acme--tiny/snapshots/" COMMIT "/a/b", 2, "acme/tiny", COMMIT, "a/b"},
        {"models--gpt2/snapshots/" COMMIT "/a", 1, "gpt2", COMMIT, "a"},
        {"models--acme--tiny/snapshots/" COMMIT, 2, "acme/tiny", COMMIT, NULL},
        {"models--acme--tiny/snapshots/main/a", 2, NULL, NULL, NULL},
        {"models--acme--tiny/blobs/a", 2, NULL, NULL, NULL},
        {"models--api--tiny/snapshots/" COMMIT "/a", 2, NULL, NULL, NULL},
    };
    struct mirror_name name;

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        const char *path = paths[i].path;

        if (!mirror_name_split(zt_text_from(path), paths[i].parts, &name)) {
            assert_null(paths[i].repository);
            continue;
        }
        assert_non_null(paths[i].repository);
        assert_string_equal(name.repository, paths[i].repository);
        assert_string_equal(name.commit, paths[i].commit);
        if (paths[i].file != NULL)
            assert_string_equal(path + name.skipped, paths[i].file);
        else
            assert_true(name.skipped > strlen(path));
    }
}

TEST(the_folder_of_a_commit_names_it)
{
    char path[MODEL_PATH_SIZE];
    struct mirror_name name;

    assert_true(mirror_name_snapshot("acme/tiny", COMMIT, path));
    assert_string_equal(path, "models--acme--tiny/snapshots/" COMMIT);
    assert_true(mirror_name_split(zt_text_from(path), 2, &name));
    assert_string_equal(name.repository, "acme/tiny");
    assert_true(mirror_name_snapshot("gpt2", COMMIT, path));
    assert_string_equal(path, "models--gpt2/snapshots/" COMMIT);
}

/* --- commits --- */

TEST(the_last_commits_are_kept_when_main_moves)
{
    for (unsigned number = 1; number <= MIRROR_VERSIONS_MAX + 3; number++)
        put("acme/tiny", version_of(number, 5, NULL), true);
    assert_int_equal(known("acme/tiny", NULL, NULL), MIRROR_VERSIONS_MAX + 3);
    assert_int_equal(known("acme/tiny", "0000000000000000000000000000000000000004", NULL), 4);
    assert_int_equal(known("acme/tiny", "0000000000000000000000000000000000000003", NULL), -1);
    assert_int_equal(mirrored.entry_count, MIRROR_VERSIONS_MAX * (2 + MIRROR_VERSION_CHARGE));
}

TEST(a_commit_that_is_only_pinned_is_not_the_current_one)
{
    put("acme/tiny", version_of(1, 5, NULL), false);
    assert_int_equal(known("acme/tiny", NULL, NULL), -1);
    put("acme/tiny", version_of(2, 5, NULL), true);
    put("acme/tiny", version_of(3, 5, NULL), false);
    assert_int_equal(known("acme/tiny", NULL, NULL), 2);
    /* Main moves to a commit that is known. */
    put("acme/tiny", version_of(1, 5, NULL), true);
    assert_int_equal(known("acme/tiny", NULL, NULL), 1);
    assert_int_equal(known("acme/tiny", "0000000000000000000000000000000000000002", NULL), 2);
    assert_int_equal(mirrored.entry_count, 3 * (2 + MIRROR_VERSION_CHARGE));
}

TEST(a_file_keeps_its_identity_as_long_as_its_digest_stays)
{
    struct mirror_version *first = version_of(1, 5, NULL);
    struct mirror_version *same;
    struct mirror_version *other;
    struct file_identity ids[3];

    first->entries[0].is_asked = first->entries[0].is_verified = true;
    first->entries[0].is_begun = true;
    same = version_of(2, 5, first);
    other = version_of(3, 6, first);
    ids[0] = mirror_entry_identity(first, &first->entries[0]);
    ids[1] = mirror_entry_identity(same, &same->entries[0]);
    ids[2] = mirror_entry_identity(other, &other->entries[0]);
    assert_true(store_identity_equal(&ids[0], &ids[1]));
    assert_true(same->entries[0].is_asked && same->entries[0].is_verified);
    assert_true(same->entries[0].is_begun && !same->entries[0].was_begun_before);
    assert_false(store_identity_equal(&ids[0], &ids[2]));
    assert_true(other->entries[0].is_asked && !other->entries[0].is_verified);
    assert_false(other->entries[0].is_begun);
    /* Without a digest, each commit may have other bytes. */
    ids[0] = mirror_entry_identity(first, &first->entries[1]);
    ids[1] = mirror_entry_identity(same, &same->entries[1]);
    assert_false(store_identity_equal(&ids[0], &ids[1]));
    mirror_version_release(first);
    mirror_version_release(same);
    mirror_version_release(other);
}

/* --- memory --- */

TEST(repositories_are_forgotten_when_there_are_too_many)
{
    const struct upstream_listing nothing = {.commit = "1"};
    const unsigned most = (unsigned)(MIRROR_ENTRIES_MAX / MIRROR_VERSION_CHARGE);
    struct mirror_repository *first;
    char name[32];

    for (unsigned i = 0; i < most; i++) {
        snprintf(name, sizeof(name), "acme/r%u", i);
        put(name, mirror_version_make(&nothing, 0, NULL), true);
    }
    assert_int_equal(mirrored.recency.count, most);
    /* A repository that a thread is asking about stays. */
    pthread_mutex_lock(&mirrored.lock);
    first = mirror_index_find(&mirrored, zt_text_from("acme/r0"));
    first->is_being_checked = true;
    pthread_mutex_unlock(&mirrored.lock);
    put("acme/last", mirror_version_make(&nothing, 0, NULL), true);
    assert_int_equal(mirrored.recency.count, most);
    assert_int_equal(known("acme/r0", NULL, NULL), 1);
    assert_int_equal(known("acme/r1", NULL, NULL), -1);
    assert_int_equal(known("acme/last", NULL, NULL), 1);
}

TEST(commits_of_one_repository_are_forgotten_when_they_have_too_many_files)
{
    struct mirror_version *version;

    for (unsigned i = 1; i <= 8; i++) {
        version = version_of(i, 1, NULL);
        /* Only counted. */
        version->count = MIRROR_ENTRIES_MAX / 4;
        put("acme/huge", version, i != 5);
    }
    assert_int_equal(known("acme/huge", NULL, NULL), 8);
    assert_int_equal(known("acme/huge", "0000000000000000000000000000000000000007", NULL), 7);
    assert_int_equal(known("acme/huge", "0000000000000000000000000000000000000001", NULL), -1);
    assert_true(mirrored.entry_count <= MIRROR_ENTRIES_MAX);
}

/* --- on disk --- */

static struct mirror_entry *begun_entry;
static atomic_uint begun_count;

static void *begin_in_thread(void *unused)
{
    mirror_index_begin(&mirrored, "acme/tiny", begun_entry);
    atomic_fetch_add(&begun_count, 1);
    return unused;
}

TEST(a_file_is_begun_once_that_is_on_disk_for_all_who_open_it)
{
    struct mirror_version *version = version_of(7, 5, NULL);
    pthread_t threads[4];
    bool is_begun = false;

    begun_entry = &version->entries[0];
    atomic_store(&begun_count, 0);
    put("acme/tiny", version, true);
    /* As if one of them was writing. */
    pthread_mutex_lock(&mirrored.saving);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, begin_in_thread, NULL), 0);
    while (!is_begun) {
        pthread_mutex_lock(&mirrored.lock);
        is_begun = begun_entry->is_begun;
        pthread_mutex_unlock(&mirrored.lock);
    }
    assert_int_equal(atomic_load(&begun_count), 0);
    pthread_mutex_unlock(&mirrored.saving);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    open_again();
    assert_int_equal(known("acme/tiny", NULL, &version), 7);
    assert_true(version->entries[0].was_begun_before);
    mirror_version_release(version);
}

TEST(repositories_survive_a_restart)
{
    struct mirror_version *version = version_of(7, 5, NULL);
    struct mirror_place place = {.file = {.repository = "acme/tiny",
                                          .size_bytes = 5,
                                          .digest_kind = UPSTREAM_SHA256,
                                          .digest = {1}}};
    const uint8_t proof[MIRROR_PROOF_BYTES] = {9, 8, 7};

    version->entries[0].is_asked = version->entries[0].is_begun = true;
    put("acme/tiny", version_of(6, 4, NULL), false);
    put("acme/tiny", version, true);
    mirror_index_save(&mirrored, "acme/tiny");
    /* The flags of a large repository are written when the index is closed, if not before. */
    pthread_mutex_lock(&mirrored.lock);
    mirror_index_find(&mirrored, zt_text_from("acme/tiny"))->saved_bytes = (size_t)1 << 30;
    pthread_mutex_unlock(&mirrored.lock);
    mirror_index_mark(&mirrored, &place, proof);
    mirror_index_save_soon(&mirrored, "acme/tiny");
    open_again();
    assert_int_equal(known("acme/tiny", NULL, &version), 7);
    assert_int_equal(known("acme/tiny", "0000000000000000000000000000000000000006", NULL), 6);
    assert_int_equal(version->modified_ns, 1007);
    assert_string_equal(version->entries[1].path, "b/config.json");
    assert_int_equal(version->entries[0].size_bytes, 5);
    assert_int_equal(version->entries[0].modified_ns, 1007);
    assert_true(version->entries[0].is_asked && version->entries[0].is_verified);
    assert_memory_equal(version->entries[0].proof, proof, sizeof(proof));
    assert_false(version->entries[0].was_begun_before);
    assert_false(version->entries[1].is_asked || version->entries[1].is_verified);
    assert_false(version->entries[1].was_begun_before);
    pthread_mutex_lock(&mirrored.lock);
    assert_int_equal(mirror_index_find(&mirrored, zt_text_from("acme/tiny"))->upstream, 1);
    pthread_mutex_unlock(&mirrored.lock);
    mirror_version_release(version);
    /* What was not verified when the process ended remains doubtful. */
    mirror_index_note_wrong(&mirrored, &place);
    open_again();
    assert_int_equal(known("acme/tiny", NULL, &version), 7);
    assert_true(version->entries[0].wrong_s > 0 && version->entries[1].wrong_s == 0);
    assert_true(version->entries[0].was_begun_before && !version->entries[1].was_begun_before);
    mirror_version_release(version);
}

TEST(a_damaged_record_is_as_if_it_were_not_there)
{
    put("acme/tiny", version_of(1, 5, NULL), true);
    put("acme/other", version_of(2, 5, NULL), true);
    mirror_index_save(&mirrored, "acme/tiny");
    run_in(
        folder,
        "set -e; for f in *; do printf x | dd of=$f bs=1 seek=70 conv=notrunc 2>/dev/null; done");
    mirror_index_save(&mirrored, "acme/other");
    open_again();
    assert_int_equal(known("acme/tiny", NULL, NULL), -1);
    assert_int_equal(known("acme/other", NULL, NULL), 2);
}

TEST(repositories_of_an_upstream_that_is_not_configured_are_left_alone)
{
    put("acme/tiny", version_of(1, 5, NULL), true);
    mirror_index_save(&mirrored, "acme/tiny");
    mirror_index_close(&mirrored);
    mirror_index_open(&mirrored, folder, urls, 1);
    assert_int_equal(known("acme/tiny", NULL, NULL), -1);
    open_again();
    assert_int_equal(known("acme/tiny", NULL, NULL), 1);
}
