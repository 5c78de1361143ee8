/* The reader of zTensor 2, with the canonical check. */
#include "fuzz.h"

#include "formats/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    fuzz_container_repaired(bytes, length, zt2_open, fuzz_repair_zt2);
    return 0;
}
