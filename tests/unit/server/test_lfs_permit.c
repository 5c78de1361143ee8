/* Permits to send objects: an address says what it is for, and only the key's owner can make it. */
#include "upload_world.h"

#include <stdio.h>

#include "hub/write/lfs_key.h"
#include "hub/write/lfs_parts.h"
#include "hub/write/lfs_permit.h"

#define OID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const uint8_t key[TICKET_KEY_BYTES] = "0123456789abcdef0123456789abcde";

static struct lfs_permit sample(void)
{
    struct lfs_permit permit = {.length = 20, .part = 3, .part_length = 7, .expires = 1000};

    strcpy(permit.repo, "owner/name");
    strcpy(permit.oid, OID);
    strcpy(permit.client, "a b");
    return permit;
}

TEST(every_member_is_bound)
{
    struct lfs_permit changed[8];
    char code[TICKET_CODE_SIZE];
    char other[TICKET_CODE_SIZE];

    for (size_t i = 0; i < 8; i++)
        changed[i] = sample();
    changed[0].repo[0] = 'x';
    changed[1].oid[63] = '0';
    changed[2].length++;
    changed[3].part++;
    changed[4].part_length++;
    changed[5].expires++;
    strcpy(changed[6].client, "a");
    changed[7].client[0] = '\0';
    changed[0].repo[10] = '\0';
    {
        const struct lfs_permit permit = sample();

        assert_true(lfs_permit_sign(key, &permit, code));
    }
    for (size_t i = 0; i < 8; i++) {
        assert_true(lfs_permit_sign(key, &changed[i], other));
        assert_string_not_equal(code, other);
    }
}

TEST(another_key_gives_another_code)
{
    const struct lfs_permit permit = sample();
    uint8_t other_key[TICKET_KEY_BYTES];
    char code[TICKET_CODE_SIZE];
    char other[TICKET_CODE_SIZE];

    memcpy(other_key, key, sizeof(key));
    other_key[31] ^= 1;
    assert_true(lfs_permit_sign(key, &permit, code));
    assert_true(lfs_permit_sign(other_key, &permit, other));
    assert_string_not_equal(code, other);
}

TEST(address_holds_the_permit)
{
    static const char begins[] = "https://h/b/owner/name.git/info/lfs/objects/" OID
                                 "/3?size=20&part_size=7&expires=1000&client=612062&signature=";
    const struct lfs_permit permit = sample();
    char href[LFS_HREF_SIZE];

    assert_true(lfs_permit_print(key, "https://h/b", &permit, href));
    assert_memory_equal(href, begins, sizeof(begins) - 1);
    assert_int_equal(strlen(href), sizeof(begins) - 1 + 64);
}

TEST(address_that_is_too_long_is_none)
{
    const struct lfs_permit permit = sample();
    char base[LFS_HREF_SIZE];
    char href[LFS_HREF_SIZE];

    memset(base, 'x', sizeof(base) - 1);
    base[sizeof(base) - 1] = '\0';
    assert_false(lfs_permit_print(key, base, &permit, href));
}

TEST(objects_are_hashed_with_sha256_alone)
{
    assert_true(lfs_is_sha256(zt_text_from("sha256")));
    assert_true(lfs_is_sha256(zt_text_from("sha_256")));
    assert_false(lfs_is_sha256(zt_text_from("sha25")));
    assert_false(lfs_is_sha256(zt_text_from("SHA256")));
}

TEST(parts_are_as_long_as_they_must_be)
{
    assert_int_equal(lfs_part_length(100, 0), 0);
    assert_int_equal(lfs_part_length(100, 100), 0);
    assert_int_equal(lfs_part_length(101, 100), 100);
    assert_int_equal(lfs_part_length(5000, 1), 5);
    assert_int_equal(lfs_part_length(5001, 1), 6);
    assert_int_equal(lfs_part_count(0, 0), 0);
    assert_int_equal(lfs_part_count(100, 100), 1);
    assert_int_equal(lfs_part_count(101, 100), 2);
    assert_true(lfs_part_count(UINT64_MAX / 2, lfs_part_length(UINT64_MAX / 2, 1)) <=
                LFS_PARTS_MAX);
}

/* --- the key --- */

static void load(struct world *world, uint8_t out_key[TICKET_KEY_BYTES])
{
    world->config.writable = true;
    snprintf(world->config.root, sizeof(world->config.root), "%s", world->root);
    lfs_key_load(&world->config, out_key);
}

WITH_UPLOADS(key_is_kept_and_secret)
{
    uint8_t one[TICKET_KEY_BYTES];
    uint8_t other[TICKET_KEY_BYTES];

    load(world, one);
    load(world, other);
    assert_memory_equal(one, other, sizeof(one));
    world_command(world, "test $(stat -c %a .ztserve/lfs-key) = 600");
    world_command(world, "test $(ls .ztserve | grep -c lfs-key) = 1");
    world_command(world, "rm .ztserve/lfs-key");
    load(world, other);
    assert_memory_not_equal(one, other, sizeof(one));
}

WITH_UPLOADS(key_that_others_could_know_is_not_used)
{
    static const char *const changes[] = {
        "chmod 640 .ztserve/lfs-key",
        "truncate -s 31 .ztserve/lfs-key",
        "truncate -s 33 .ztserve/lfs-key",
        "mv .ztserve/lfs-key .ztserve/k; ln -s k .ztserve/lfs-key",
        "rm .ztserve/lfs-key; mkdir .ztserve/lfs-key",
    };

    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        uint8_t one[TICKET_KEY_BYTES];
        uint8_t other[TICKET_KEY_BYTES];

        load(world, one);
        world_command(world, changes[i]);
        load(world, other);
        assert_memory_not_equal(one, other, sizeof(one));
        world_command(world, "rm -rf .ztserve");
    }
}
