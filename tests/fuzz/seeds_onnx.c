/* Seeds of ONNX: messages of one tensor, or of broken or unusual ones, written byte by byte. */
#include "seeds.h"

#define MODEL(graph_length, graph)    "\x08\x0a\x3a" graph_length graph
#define TENSOR(tensor_length, tensor) "\x2a" tensor_length tensor
#define NAME                          "\x42\1w"

static const struct {
    const char *name;
    const char *bytes;
    size_t length;
} messages[] = {
#define MESSAGE(name, bytes)           \
    {                                  \
        name, bytes, sizeof(bytes) - 1 \
    }
    MESSAGE("empty", MODEL("\0", "")),
    MESSAGE("raw", MODEL("\x13", TENSOR("\x11", "\x08\2\x10\1" NAME "\x4a\x08\1\2\3\4\5\6\7\x08"))),
    MESSAGE("floats",
            MODEL("\x13", TENSOR("\x11", "\x0a\2\1\2\x10\1" NAME "\x22\x08\1\2\3\4\5\6\7\x08"))),
    MESSAGE("doubles", MODEL("\x11", TENSOR("\x0f", "\x10\x0b" NAME "\x52\x08\1\2\3\4\5\6\7\x08"))),
    MESSAGE("integers", MODEL("\x16", TENSOR("\x14", "\x08\2\x10\6" NAME
                                                     "\x2a\x0b\xff\xff\xff\xff\xff\xff\xff\xff\xff"
                                                     "\1\7"))),
    MESSAGE("longs", MODEL("\x0e", TENSOR("\x0c", "\x08\2\x10\7" NAME "\x3a\3\x80\1\7"))),
    MESSAGE("unsigned", MODEL("\x0e", TENSOR("\x0c", "\x08\2\x10\x0d" NAME "\x5a\3\x80\1\7"))),
    MESSAGE("packed", MODEL("\x0e", TENSOR("\x0c", "\x08\3\x10\x16" NAME "\x2a\3\xff\1\7"))),
    MESSAGE("two", MODEL("\x18", TENSOR("\x0a", "\x10\2" NAME "\x4a\1\1\x70\0")
                                     TENSOR("\x0a", "\x10\3\x42\1v\x4a\1\1\x70\0"))),
    MESSAGE("external", MODEL("\x33", TENSOR("\x31", "\x08\2\x10\1" NAME "\x70\1"
                                                     "\x6a\x0d\x0a\x08location\x12\1f"
                                                     "\x6a\x0b\x0a\6offset\x12\1"
                                                     "4\x6a\x0b\x0a\6length\x12\1"
                                                     "8"))),
    MESSAGE("sparse", MODEL("\2", "\x7a\0")),
    MESSAGE("nodes", MODEL("\x0c", "\x0a\2\x0a\0" TENSOR("\6", "\x10\1" NAME "\x65"))),
};

void seeds_onnx(void)
{
    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++)
        seed_put("onnx", messages[i].name, messages[i].bytes, messages[i].length);
}
