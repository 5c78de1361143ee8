/* The registry of uploads: whose limits an entry counts for, and what an operator is shown. */
#include "tests.h"

#include <string.h>

#include "upload/shared/registry.h"

static struct registry_entry entry_of(enum upload_kind kind, const char *client, time_t created)
{
    struct registry_entry entry = {
        .kind = kind, .id = "0123456789abcdef0123456789abcdef", .model = "m"};

    strcpy(entry.client, client);
    entry.created = created;
    atomic_init(&entry.active, created + 60);
    atomic_init(&entry.received, 7);
    return entry;
}

TEST(a_client_holds_no_more_than_its_limit)
{
    struct registry *registry = registry_new(60);
    struct registry_entry first = entry_of(UPLOAD_KIND_WRITER, "a", 1);
    struct registry_entry second = entry_of(UPLOAD_KIND_RESUMABLE, "a", 2);
    struct registry_entry third = entry_of(UPLOAD_KIND_WRITER, "a", 3);

    assert_true(registry_add(registry, &first, 2));
    assert_true(registry_add(registry, &second, 2));
    assert_false(registry_add(registry, &third, 2));
    registry_remove(registry, &third);
    registry_remove(registry, &first);
    assert_true(registry_add(registry, &third, 2));
    registry_remove(registry, &first);
    registry_remove(registry, &second);
    registry_remove(registry, &third);
    registry_free(registry);
}

TEST(others_and_bodies_do_not_count)
{
    struct registry *registry = registry_new(60);
    struct registry_entry first = entry_of(UPLOAD_KIND_WRITER, "a", 1);
    struct registry_entry other = entry_of(UPLOAD_KIND_WRITER, "b", 1);
    struct registry_entry body = entry_of(UPLOAD_KIND_FILE, "a", 1);
    struct registry_entry second_body = entry_of(UPLOAD_KIND_FILE, "a", 1);

    assert_true(registry_add(registry, &first, 1));
    assert_true(registry_add(registry, &other, 1));
    assert_true(registry_add(registry, &body, 1));
    assert_false(registry_add(registry, &second_body, 1));
    assert_true(registry_add(registry, &second_body, 0));
    registry_remove(registry, &first);
    registry_remove(registry, &other);
    registry_remove(registry, &body);
    registry_remove(registry, &second_body);
    registry_free(registry);
}

TEST(nobody_has_no_limit)
{
    struct registry *registry = registry_new(60);
    struct registry_entry first = entry_of(UPLOAD_KIND_WRITER, "", 1);
    struct registry_entry second = entry_of(UPLOAD_KIND_WRITER, "", 1);

    assert_true(registry_add(registry, &first, 1));
    assert_true(registry_add(registry, &second, 1));
    registry_remove(registry, &first);
    registry_remove(registry, &second);
    registry_free(registry);
}

TEST(the_list_is_by_time_of_creation)
{
    static const char expected[] =
        "{\"uploads\":["
        "{\"id\":\"0123456789abcdef0123456789abcdef\",\"kind\":\"file\",\"model\":\"m\","
        "\"created\":\"1970-01-01T00:00:01Z\",\"active\":\"1970-01-01T00:01:01Z\",\"received\":7},"
        "{\"id\":\"0123456789abcdef0123456789abcdef\",\"kind\":\"resumable\",\"model\":\"m\","
        "\"created\":\"1970-01-01T00:00:02Z\",\"active\":\"1970-01-01T00:01:02Z\",\"received\":7,"
        "\"expires\":\"";
    struct registry *registry = registry_new(60);
    struct registry_entry later = entry_of(UPLOAD_KIND_RESUMABLE, "a", 2);
    struct registry_entry earlier = entry_of(UPLOAD_KIND_FILE, "a", 1);
    struct json json;

    assert_true(registry_add(registry, &later, 0));
    assert_true(registry_add(registry, &earlier, 0));
    json_init(&json, false);
    registry_write(registry, (struct name_filter){NULL, NULL}, &json);
    assert_false(json.failed);
    assert_true(json.length > strlen(expected));
    assert_memory_equal(json.text, expected, strlen(expected));
    json_free(&json);
    registry_remove(registry, &later);
    registry_remove(registry, &earlier);
    registry_free(registry);
}

TEST(ids_are_thirty_two_digits_and_differ)
{
    char one[UPLOAD_ID_SIZE];
    char other[UPLOAD_ID_SIZE];

    registry_make_id(one);
    registry_make_id(other);
    assert_true(registry_id_is_valid((struct zt_text){one, strlen(one)}));
    assert_string_not_equal(one, other);
    assert_false(registry_id_is_valid((struct zt_text){one, strlen(one) - 1}));
    one[3] = 'G';
    assert_false(registry_id_is_valid((struct zt_text){one, strlen(one)}));
    one[3] = '\0';
    assert_false(registry_id_is_valid((struct zt_text){one, UPLOAD_ID_SIZE - 1}));
}
