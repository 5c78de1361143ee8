/* Attributes collected by readers. */
#include <string.h>

#include "formats/attribute_list.h"
#include "tests.h"

#define RULE "test §DuplicateKey"

/* The manifest, which the keys lie in. */
static const char manifest[] = "b a c a";

struct fixture {
    struct zt_source *source;
    struct zt_builder builder;
    struct zt_attribute_list list;
};

static struct zt_text key_at(const struct fixture *fixture, size_t at)
{
    return (struct zt_text){(const char *)fixture->builder.model->storage->manifest + at, 1};
}

static void begin(struct fixture *fixture, bool is_by_name)
{
    memset(fixture, 0, sizeof(*fixture));
    fixture->list.is_by_name = is_by_name;
    fixture->source = memory_source(manifest, sizeof(manifest) - 1);
    assert_ok(zt_builder_init(&fixture->builder, fixture->source, 0, sizeof(manifest) - 1, NULL));
}

static void end(struct fixture *fixture)
{
    zt_attribute_list_free(&fixture->list);
    zt_builder_abandon(&fixture->builder);
    zt_source_close(fixture->source);
}

/* Adds the key at each position given, with its number as the value. */
static void add_keys(struct fixture *fixture, unsigned count, const size_t positions[])
{
    for (unsigned i = 0; i < count; i++) {
        assert_ok(zt_attribute_list_key(&fixture->list, key_at(fixture, positions[i]), NULL));
        zt_cbor_put_uint(&fixture->list.pairs, i);
    }
}

static void assert_map(const struct fixture *fixture, const char *expected)
{
    struct zt_text map = {NULL, 0};

    assert_ok(zt_attribute_list_keep(&fixture->list, &fixture->builder, &map, NULL));
    assert_json(map, expected);
}

TEST(list_keeps_pairs_in_the_order_of_additions)
{
    struct fixture fixture;

    begin(&fixture, false);
    assert_map(&fixture, "{}");
    add_keys(&fixture, 3, (const size_t[]){0, 2, 4});
    assert_ok(zt_attribute_list_check(&fixture.list, &fixture.builder, RULE, NULL));
    assert_map(&fixture, "{\"b\":0,\"a\":1,\"c\":2}");
    end(&fixture);
}

TEST(list_keeps_pairs_in_the_order_of_names)
{
    struct fixture fixture;

    begin(&fixture, true);
    add_keys(&fixture, 3, (const size_t[]){0, 2, 4});
    assert_ok(zt_attribute_list_check(&fixture.list, &fixture.builder, RULE, NULL));
    assert_map(&fixture, "{\"a\":1,\"b\":0,\"c\":2}");
    end(&fixture);
}

TEST(list_refuses_a_key_twice_at_the_second)
{
    struct fixture fixture;
    struct zt_error error;

    begin(&fixture, false);
    add_keys(&fixture, 4, (const size_t[]){0, 6, 2, 4});
    zt_attribute_list_check(&fixture.list, &fixture.builder, RULE, &error);
    assert_failure(&error, ZT_INVALID, RULE, 6);
    end(&fixture);
}

TEST(list_begins_again_once_cleared)
{
    static const char pair[] = "\x61x\x07";
    struct fixture fixture;

    begin(&fixture, false);
    zt_attribute_list_pair(&fixture.list, (struct zt_text){pair, 3});
    assert_map(&fixture, "{\"x\":7}");
    zt_attribute_list_clear(&fixture.list);
    assert_map(&fixture, "{}");
    zt_attribute_list_pair(&fixture.list, (struct zt_text){pair, 3});
    assert_map(&fixture, "{\"x\":7}");
    end(&fixture);
}
