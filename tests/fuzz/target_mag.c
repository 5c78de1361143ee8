/* The readers of .mag: both layouts of version 1, snapshots, and version 300. */
#include "fuzz.h"

#include "formats/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    fuzz_container_repaired(bytes, length, mag_open, fuzz_repair_mag);
    return 0;
}
