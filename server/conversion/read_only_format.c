#include "conversion/read_only_format.h"

#include <stddef.h>
#include <strings.h>

#include "zt/text.h"

const char *read_only_format(const char *text)
{
    static const struct {
        const char *extension;
        const char *name;
    } formats[] = {
        {".gguf", "GGUF"},   {".onnx", "ONNX"},    {".pt", "PyTorch"},      {".pth", "PyTorch"},
        {".bin", "PyTorch"}, {".ckpt", "PyTorch"}, {".pytorch", "PyTorch"},
    };

    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        if (strcasecmp(text, formats[i].extension + 1) == 0 ||
            zt_text_ends_like(zt_text_from(text), zt_text_from(formats[i].extension)))
            return formats[i].name;
    return NULL;
}
