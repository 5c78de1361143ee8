/* The reader of zTensor 1.0, 1.1 and 1.2. */
#include "fuzz.h"

#include "formats/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    fuzz_container(bytes, length, zt1_open);
    return 0;
}
