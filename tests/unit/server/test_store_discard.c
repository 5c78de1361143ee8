/* Space inside a file that goes on is given back. */
#include "support.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/store.h"

#define LENGTH ((size_t)1 << 20)

static void discarded_bytes_are_zeros_and_others_stay(void **state)
{
    char root[] = "/tmp/zt-test-discard-XXXXXX";
    char *bytes = malloc(LENGTH);
    struct stored_upload *upload;
    struct zt_source *source;
    struct zt_error error;
    struct store *store;

    (void)state;
    assert_non_null(mkdtemp(root));
    assert_non_null(bytes);
    memset(bytes, 'x', LENGTH);
    assert_int_equal(store_local_open(root, 0, &store, &error), ZT_OK);
    assert_int_equal(store->ops->create(store, LENGTH, &upload, &error), ZT_OK);
    assert_int_equal(store->ops->write_at(upload, 0, bytes, LENGTH, &error), ZT_OK);
    assert_false(store->ops->discard(upload, 1, UINT64_MAX));
    assert_true(store->ops->discard(upload, 5, 0));
    assert_true(store->ops->discard(upload, 1000, LENGTH - 2000));
    assert_int_equal(store->ops->length(upload), LENGTH);
    assert_int_equal(store->ops->read_back(upload, &source, &error), ZT_OK);
    assert_int_equal(zt_source_read_at(source, 0, bytes, LENGTH, &error), ZT_OK);
    for (size_t i = 0; i < LENGTH; i++)
        assert_int_equal(bytes[i], i >= 1000 && i < LENGTH - 1000 ? 0 : 'x');
    store->ops->abandon(upload);
    store->ops->close(store);
    free(bytes);
    rmdir(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(discarded_bytes_are_zeros_and_others_stay)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
