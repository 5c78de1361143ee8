/* The reader of GGUF. */
#include "fuzz.h"

#include "formats/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    fuzz_container(bytes, length, gguf_open);
    return 0;
}
