# Makes a C file of a text file: cmake -D INPUT=… -D OUTPUT=… -D NAME=… -P embed.cmake
# It defines NAME_text (NUL-terminated), NAME_length, and NAME_etag, a strong tag of the text.
file(READ "${INPUT}" bytes HEX)
string(LENGTH "${bytes}" digits)
math(EXPR length "${digits} / 2")
file(SHA256 "${INPUT}" digest)
string(SUBSTRING "${digest}" 0 32 tag)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE "${OUTPUT}"
     "#include <stddef.h>\n\n"
     "extern const char ${NAME}_text[];\nextern const size_t ${NAME}_length;\nextern const char ${NAME}_etag[];\n\n"
     "const char ${NAME}_text[] = {${bytes}0x00};\nconst size_t ${NAME}_length = ${length};\n"
     "const char ${NAME}_etag[] = \"\\\"${tag}\\\"\";\n")
