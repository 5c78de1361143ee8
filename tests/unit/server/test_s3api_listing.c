/* Pages of keys: tables of what S3 documents, and a comparison with a model that knows no better
 * than to look at every key. */
#include "tests.h"

#include <stdlib.h>

#include "s3/s3api_listing.h"

#define KEYS_MAX 64
#define TEXT_MAX 16

/* Sorted keys. A key that begins with '!' may not be seen. */
struct keys {
    size_t count;
    char texts[KEYS_MAX][TEXT_MAX];
    size_t asked; /* how often key_at was called */
};

static struct zt_text key_at(void *context, size_t index)
{
    struct keys *keys = context;

    assert_true(index < keys->count);
    keys->asked++;
    return zt_text_from(keys->texts[index]);
}

static bool text_is_seen(const char *text)
{
    return strchr(text, '!') == NULL;
}

static bool is_seen(void *context, size_t index)
{
    const struct keys *keys = context;

    assert_true(index < keys->count);
    return text_is_seen(keys->texts[index]);
}

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Sorts the keys, which are separated by blanks. */
static void read_keys(struct keys *keys, const char *text)
{
    char copy[KEYS_MAX * TEXT_MAX];

    keys->count = 0;
    strcpy(copy, text);
    for (char *key = strtok(copy, " "); key != NULL; key = strtok(NULL, " "))
        strcpy(keys->texts[keys->count++], key);
    qsort(keys->texts, keys->count, TEXT_MAX, compare);
}

/* Writes the items of a page, each with a blank, and "..." if more follow. */
static void write_page(struct keys *keys, const struct s3api_page_query *query, char *out_text)
{
    const struct s3api_keys list = {keys->count, key_at, is_seen, keys};
    struct s3api_page *page = calloc(1, sizeof(*page));

    assert_non_null(page);
    s3api_page_select(&list, query, page);
    out_text[0] = '\0';
    for (size_t i = 0; i < page->count; i++) {
        const struct s3api_item *item = &page->items[i];

        assert_true(zt_text_starts_with(zt_text_from(keys->texts[item->index]), item->key));
        assert_true(is_seen(keys, item->index));
        assert_true(item->is_prefix || strlen(keys->texts[item->index]) == item->key.length);
        sprintf(out_text + strlen(out_text), "%.*s ", (int)item->key.length, item->key.bytes);
    }
    strcat(out_text, page->is_truncated ? "..." : "");
    free(page);
}

TEST(pages_have_the_keys_that_are_asked_for)
{
    static const char all[] = "asdf boo/bar boo/baz/xyzzy cquux/thud cquux/bla a/b/c a/b! a-b a!";
    static const struct {
        const char *prefix;
        const char *delimiter;
        const char *after;
        size_t limit;
        const char *expected;
    } rows[] = {
        {"", "", "", 1000, "a-b a/b/c asdf boo/bar boo/baz/xyzzy cquux/bla cquux/thud "},
        {"", "/", "", 1000, "a-b a/ asdf boo/ cquux/ "},
        {"boo/", "/", "", 1000, "boo/bar boo/baz/ "},
        {"boo", "/", "", 1000, "boo/ "},
        {"bo", "", "", 1000, "boo/bar boo/baz/xyzzy "},
        {"a/b", "/", "", 1000, "a/b/ "},
        {"none", "/", "", 1000, ""},
        {"boo/bar/", "/", "", 1000, ""},
        /* Any text can be a delimiter. */
        {"", "b", "", 1000, "a-b a/b asdf b cquux/b cquux/thud "},
        {"", "z/x", "", 1000, "a-b a/b/c asdf boo/bar boo/baz/x cquux/bla cquux/thud "},
        {"", "oo/ba", "", 1000, "a-b a/b/c asdf boo/ba cquux/bla cquux/thud "},
        {"asdf", "f", "", 1000, "asdf "},
        {"", "none", "", 1, "a-b ..."},
        /* Pages. */
        {"", "/", "", 2, "a-b a/ ..."},
        {"", "/", "a/", 2, "asdf boo/ ..."},
        {"", "/", "boo/", 1, "cquux/ "},
        {"", "/", "", 5, "a-b a/ asdf boo/ cquux/ "},
        {"", "/", "", 0, ""},
        {"", "", "", 0, ""},
        /* A text that need not exist. */
        {"", "", "b", 2, "boo/bar boo/baz/xyzzy ..."},
        {"", "/", "boo/bar", 1000, "cquux/ "},
        {"", "/", "asdg", 1000, "boo/ cquux/ "},
        {"boo/", "/", "a", 1000, "boo/bar boo/baz/ "},
        {"boo/", "/", "boo/bar", 1000, "boo/baz/ "},
        {"boo/", "/", "c", 1000, ""},
        {"", "/", "zzz", 1000, ""},
        /* Keys that may not be seen have no common prefix, and do not count. */
        {"a/", "", "", 1, "a/b/c "},
        {"a", "!", "", 1000, "a-b a/b/c asdf "},
        {"a!", "", "", 1000, ""},
    };
    char text[512];
    struct keys keys;

    read_keys(&keys, all);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct s3api_page_query query = {zt_text_from(rows[i].prefix),
                                               zt_text_from(rows[i].delimiter),
                                               zt_text_from(rows[i].after), rows[i].limit};

        write_page(&keys, &query, text);
        assert_string_equal(text, rows[i].expected);
    }
    read_keys(&keys, "");
    write_page(&keys, &(struct s3api_page_query){.limit = 1}, text);
    assert_string_equal(text, "");
}

/* --- the model --- */

/* Returns the item of a key: the key, or its common prefix. */
static struct zt_text item_of(const struct s3api_page_query *query, const char *key)
{
    for (size_t at = query->prefix.length; query->delimiter.length > 0 && key[at] != '\0'; at++)
        if (strncmp(key + at, query->delimiter.bytes, query->delimiter.length) == 0)
            return (struct zt_text){key, at + query->delimiter.length};
    return zt_text_from(key);
}

static void write_naive_page(const struct keys *keys, const struct s3api_page_query *query,
                             char *out_text)
{
    struct zt_text last = {"", 0};
    size_t count = 0;

    out_text[0] = '\0';
    for (size_t i = 0; i < keys->count; i++) {
        const char *key = keys->texts[i];
        const struct zt_text item = item_of(query, key);

        if (!zt_text_starts_with(zt_text_from(key), query->prefix) || !text_is_seen(key) ||
            zt_text_compare(item, query->after) <= 0 || zt_text_compare(item, last) == 0)
            continue;
        if (count++ == query->limit) {
            strcat(out_text, query->limit > 0 ? "..." : "");
            return;
        }
        sprintf(out_text + strlen(out_text), "%.*s ", (int)item.length, item.bytes);
        last = item;
    }
}

static unsigned random_below(unsigned *seed, unsigned bound)
{
    *seed = *seed * 1103515245u + 12345u;
    return (*seed >> 16) % bound;
}

static void random_text(unsigned *seed, unsigned length_max, char *out_text)
{
    const unsigned length = random_below(seed, length_max + 1);

    for (unsigned i = 0; i < length; i++)
        out_text[i] = "ab/-!"[random_below(seed, i % 4 == 3 ? 5 : 4)];
    out_text[length] = '\0';
}

static void random_keys(unsigned *seed, struct keys *keys)
{
    const size_t count = random_below(seed, KEYS_MAX);
    size_t used = 0;

    for (size_t i = 0; i < count; i++)
        do
            random_text(seed, 7, keys->texts[i]);
        while (keys->texts[i][0] == '\0');
    qsort(keys->texts, count, TEXT_MAX, compare);
    for (size_t i = 0; i < count; i++)
        if (used == 0 || strcmp(keys->texts[used - 1], keys->texts[i]) != 0)
            memmove(keys->texts[used++], keys->texts[i], TEXT_MAX);
    keys->count = used;
}

/* Follows the pages of a query to its end, and compares each with the model. */
static void compare_pages(struct keys *keys, struct s3api_page_query query)
{
    char expected[1024];
    char text[1024];
    char after[TEXT_MAX];

    for (unsigned pages = 0;; pages++) {
        const size_t room = sizeof(" ...");
        char *end;

        assert_true(pages <= KEYS_MAX);
        write_page(keys, &query, text);
        write_naive_page(keys, &query, expected);
        assert_string_equal(text, expected);
        end = strstr(text, " ...");
        if (end == NULL)
            return;
        assert_int_equal(strlen(end) + 1, room);
        *end = '\0';
        strcpy(after, strrchr(text, ' ') != NULL ? strrchr(text, ' ') + 1 : text);
        query.after = zt_text_from(after);
    }
}

TEST(pages_are_those_of_the_model)
{
    for (unsigned seed = 1; seed <= 4000; seed++) {
        unsigned chance = seed;
        char prefix[TEXT_MAX];
        char delimiter[TEXT_MAX];
        char after[TEXT_MAX];
        struct keys keys;

        random_keys(&chance, &keys);
        random_text(&chance, 2, prefix);
        random_text(&chance, 2, delimiter);
        random_text(&chance, random_below(&chance, 2) * 4, after);
        compare_pages(&keys, (struct s3api_page_query){
                                 zt_text_from(prefix), zt_text_from(delimiter), zt_text_from(after),
                                 random_below(&chance, 8) == 0 ? 1000 : random_below(&chance, 4)});
    }
}

/* --- cost --- */

#define MANY_COUNT 200000
#define MANY_SIZE  10

struct many {
    char (*texts)[MANY_SIZE];
    size_t asked;
};

static struct zt_text many_at(void *context, size_t index)
{
    struct many *many = context;

    many->asked++;
    return zt_text_from(many->texts[index]);
}

static bool is_always_seen(void *context, size_t index)
{
    (void)context;
    (void)index;
    return true;
}

TEST(keys_below_a_common_prefix_are_not_looked_at)
{
    struct many many = {calloc(MANY_COUNT, MANY_SIZE), 0};
    const struct s3api_keys list = {MANY_COUNT, many_at, is_always_seen, &many};
    struct s3api_page *page = calloc(1, sizeof(*page));

    assert_true(many.texts != NULL && page != NULL);
    for (unsigned i = 0; i < MANY_COUNT; i++)
        snprintf(many.texts[i], MANY_SIZE, "%c/%06u", (char)('a' + i / 50000), i);
    s3api_page_select(&list, &(struct s3api_page_query){{"", 0}, {"/", 1}, {"", 0}, 1000}, page);
    assert_int_equal(page->count, 4);
    assert_true(many.asked < 200);
    free(many.texts);
    free(page);
}

/* --- tokens --- */

TEST(tokens_name_a_key)
{
    static const char *const keys[] = {"a", "a/b+c %&<>", "gr\xC3\xB6\xC3\x9F/\xE6\x97\xA5.zt"};
    static const char *const wrong[] = {"", "*", "YQ=", "YQ==", "YR", "Y", "a b", "\xC3\xB6"};
    char token[S3API_TOKEN_SIZE(64)];
    char key[64];
    size_t length;

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        s3api_token_write(zt_text_from(keys[i]), token);
        assert_int_equal(strcspn(token, "+/=%&<> "), strlen(token));
        assert_true(s3api_token_read(zt_text_from(token), key, sizeof(key), &length));
        assert_true(zt_text_is((struct zt_text){key, length}, keys[i]));
        assert_false(s3api_token_read(zt_text_from(token), key, strlen(keys[i]) - 1, &length));
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(s3api_token_read(zt_text_from(wrong[i]), key, sizeof(key), &length));
}
