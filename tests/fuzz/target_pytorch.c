/* The readers of PyTorch's archives and stacked pickles. */
#include "fuzz.h"

#include "formats/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    if (length >= 2 && bytes[0] == 0x80)
        fuzz_container(bytes, length, pytorch_legacy_open);
    else
        fuzz_container_repaired(bytes, length, pytorch_zip_open, fuzz_repair_zip);
    return 0;
}
