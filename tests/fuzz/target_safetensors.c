/* The reader of safetensors. */
#include "fuzz.h"

#include "formats/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    fuzz_container(bytes, length, safetensors_open);
    return 0;
}
