/* The reader of ONNX. */
#include "fuzz.h"

#include "formats/formats.h"

/* Of the version, which all writers put first. */
#define FIRST_TAG 0x08

/* The reader takes what detection has found to be a message. */
static enum zt_status open_detected(struct zt_source *source, struct zt_model **out_model,
                                    struct zt_error *error)
{
    return zt_model_open(source, out_model, error);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    /* Other formats have targets of their own. */
    if (length >= 2 && bytes[0] == FIRST_TAG)
        fuzz_container(bytes, length, open_detected);
    return 0;
}
