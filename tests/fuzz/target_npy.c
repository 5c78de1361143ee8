/* The reader of NPY arrays. */
#include "fuzz.h"

#include "formats/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    fuzz_container(bytes, length, npy_open);
    return 0;
}
