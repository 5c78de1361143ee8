/* The reader of zTensor 0.1. */
#include "fuzz.h"

#include "formats/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    fuzz_container(bytes, length, zt01_open);
    return 0;
}
