/* ONNX: data in files beside the model. */
#include "onnx_message.h"

#include "zt/shards.h"

TEST(external_data_is_a_shard)
{
    static const char tensor[] =
        EXTERNAL IN_F OFFSET("\x0d", "\3", "100") LENGTH("\x0b", "\1", "8") "\x6a\x0e\x0a\x08"
                                                                            "checksum\x12\2xx";
    struct opened opened;

    open_tensor(&opened, tensor, sizeof(tensor) - 1);
    assert_int_equal(only_part(&opened)->shard, 1);
    assert_int_equal(only_part(&opened)->offset, 100);
    assert_int_equal(only_part(&opened)->length, 8);
    assert_int_equal(opened.model->shard_count, 1);
    assert_int_equal(opened.model->shards[0].kind, ZT_SHARD_DATA);
    assert_int_equal(opened.model->shards[0].size_bytes, 108);
    assert_int_equal(opened.model->shards[0].name_length, 1);
    close_model(&opened);
}

TEST(external_data_must_hold_what_the_tensors_need)
{
    static const char tensor[] = EXTERNAL IN_F OFFSET("\x0b", "\1", "4");
    static const uint8_t data[13];
    struct opened opened;
    struct zt_error error;

    open_tensor(&opened, tensor, sizeof(tensor) - 1);
    for (size_t length = 0; length <= sizeof(data); length++) {
        struct zt_source *source;
        enum zt_status status;

        zt_error_clear(&error);
        source = memory_source(data, length);
        status = zt_shard_check(&opened.model->shards[0], source, &error);
        assert_int_equal(status, length < 12 ? ZT_INVALID : ZT_OK);
        if (status != ZT_OK)
            assert_failure(&error, ZT_INVALID, "onnx §External Size", length);
        zt_source_close(source);
    }
    close_model(&opened);
}

TEST(open_refuses_external_data_that_is_not_beside_the_model)
{
    struct bytes tensor = {0};
    struct bytes entry = {0};
    struct bytes model = {0};
    char name[256];

    REFUSE(EXTERNAL, "External Location", ITSELF);
    REFUSE(EXTERNAL OFFSET("\x0b", "\1", "0"), "External Location", 9);
    REFUSE(EXTERNAL LOCATION("\x0c", "\0", ""), "External Location", 23);
    REFUSE(EXTERNAL LOCATION("\x0d", "\1", "."), "External Location", 23);
    REFUSE(EXTERNAL LOCATION("\x0e", "\2", ".."), "External Location", 23);
    REFUSE(EXTERNAL LOCATION("\x0e", "\2", ".f"), "External Location", 23);
    REFUSE(EXTERNAL LOCATION("\x0e", "\2", "/f"), "External Location", 23);
    REFUSE(EXTERNAL LOCATION("\x0e", "\2", "a/"), "External Location", 23);
    REFUSE(EXTERNAL LOCATION("\x10", "\4", "a/.f"), "External Location", 23);
    REFUSE(EXTERNAL LOCATION("\x12", "\6", "a/../f"), "External Location", 23);
    REFUSE(EXTERNAL LOCATION("\x10", "\4", "../f"), "External Location", 23);
    REFUSE(EXTERNAL LOCATION("\x0f", "\3", "a\\f"), "External Location", 23);
    REFUSE(EXTERNAL LOCATION("\x0f", "\3", "a\0f"), "External Location", 23);
    REFUSE(EXTERNAL LOCATION("\x0f", "\3", "a\nf"), "External Location", 23);
    REFUSE(EXTERNAL LOCATION("\x0d", "\1", "\xff"), "External Location", 23);
    memset(name, 'n', sizeof(name));
    put_field(&entry, 1, "location", 8);
    put_field(&entry, 2, name, sizeof(name));
    bytes_append(&tensor, EXTERNAL, 9);
    put_field(&tensor, 13, entry.at, entry.length);
    put_tensor_model(&model, tensor.at, tensor.length);
    bytes_assert_refused(&model, "onnx §External Location", MESSAGE_AT + 2 + 9 + 3 + 10 + 3);
    bytes_free(&model);
    bytes_free(&tensor);
    bytes_free(&entry);
}

TEST(open_refuses_entries_that_cannot_be)
{
    REFUSE(EXTERNAL IN_F IN_F, "External Entry", 26);
    REFUSE(EXTERNAL IN_F OFFSET("\x0b", "\1", "0") OFFSET("\x0b", "\1", "0"), "External Entry", 39);
    REFUSE(EXTERNAL IN_F LENGTH("\x0b", "\1", "8") LENGTH("\x0b", "\1", "8"), "External Entry", 39);
    REFUSE(EXTERNAL "\x6a\6\x0a\1k\x0a\1k", "External Entry", 14);
    REFUSE(EXTERNAL "\x6a\6\x12\1v\x12\1v", "External Entry", 14);
    REFUSE(EXTERNAL IN_F OFFSET("\x0a", "\0", ""), "External Entry", 36);
    REFUSE(EXTERNAL IN_F OFFSET("\x0c", "\2", "-1"), "External Entry", 36);
    REFUSE(EXTERNAL IN_F OFFSET("\x0c", "\2", "+1"), "External Entry", 36);
    REFUSE(EXTERNAL IN_F OFFSET("\x0c", "\2", "1 "), "External Entry", 36);
    REFUSE(EXTERNAL IN_F LENGTH("\x0d", "\3", "0x8"), "External Entry", 36);
    REFUSE(EXTERNAL IN_F OFFSET("\x1e", "\x14", "18446744073709551616"), "External Entry", 36);
    REFUSE(EXTERNAL IN_F OFFSET("\x1f", "\x15", "000000000000000000001"), "External Entry", 36);
}

TEST(open_refuses_external_ranges_that_cannot_be)
{
    REFUSE(EXTERNAL IN_F LENGTH("\x0b", "\1", "7"), "External Length", 9);
    REFUSE(EXTERNAL IN_F LENGTH("\x0b", "\1", "9"), "External Length", 9);
    REFUSE(EXTERNAL IN_F OFFSET("\x1d", "\x13", "9223372036854775800"), "External Length", 9);
    REFUSE(EXTERNAL IN_F OFFSET("\x1e", "\x14", "18446744073709551615"), "External Length", 9);
    REFUSE(EXTERNAL IN_F RAW, "Tensor Data", 24);
}
