/* The pickle machine. The first byte says how: TorchScript's names, persistent ids of six parts. */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "pickle/pickle.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct pickle pickle;
    struct zt_source *source;
    pickle_value value;
    uint64_t end = 0;

    if (length < 1)
        return 0;
    pickle_init(&pickle, bytes + 1, length - 1, 0);
    pickle.is_torchscript = bytes[0] & 1;
    pickle.is_legacy = bytes[0] & 2;
    if (pickle_run(&pickle, &value, NULL) == ZT_OK) {
        for (uint32_t at = pickle_storage_next(&pickle, 0); at != 0;
             at = pickle_storage_next(&pickle, at)) {
            struct pickle_storage storage;

            pickle_storage_read(&pickle, at, &storage);
            assert(storage.view_count <= storage.count);
        }
        if (pickle_kind_of(value) == PICKLE_TENSOR) {
            struct pickle_tensor tensor;

            pickle_tensor_read(&pickle, value, &tensor);
            assert(tensor.rank <= PICKLE_RANK_MAX);
        }
        /* What runs has the length that is measured without running it. */
        assert(zt_source_from_memory(bytes + 1, length - 1, &source, NULL) == ZT_OK);
        assert(pickle_measure(source, &end, length - 1, NULL) == ZT_OK && end == pickle.position);
        zt_source_close(source);
    }
    assert(pickle_held_bytes(&pickle) <= pickle.budget_bytes);
    pickle_free(&pickle);
    return 0;
}
