/* The reader of NPZ archives. */
#include "fuzz.h"

#include "formats/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    fuzz_container_repaired(bytes, length, npz_open, fuzz_repair_zip);
    return 0;
}
