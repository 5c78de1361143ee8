/* The part of expat that reading needs. A document type declaration ends the reading as soon as it
 * begins: nothing can then declare entities, and nothing outside the document is ever read. */
#include "input/xml_read.h"

#include <assert.h>
#include <expat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Between the address of a namespace and the local name. */
#define SEPARATOR '\n'

struct reader {
    XML_Parser parser;
    xml_visitor *visit;
    void *context;
    const char *refusal; /* why we ended the reading, or NULL */
    bool refused;
    unsigned depth;
    bool has_elements; /* the innermost open element */
    size_t path_length;
    size_t text_length;
    char path[XML_PATH_MAX + 1];
    char text[XML_TEXT_MAX + 1];
};

/* Handlers may be called again after it, for what expat has read already. */
static void refuse(struct reader *reader, const char *why)
{
    if (reader->refused)
        return;
    reader->refused = true;
    reader->refusal = why;
    XML_StopParser(reader->parser, XML_FALSE);
}

static const char *local_name(const char *name)
{
    const char *separator = strrchr(name, SEPARATOR);

    return separator == NULL ? name : separator + 1;
}

static void XMLCALL element_begins(void *context, const XML_Char *name, const XML_Char **attributes)
{
    struct reader *reader = context;
    const char *local = local_name(name);
    const size_t length = strlen(local);
    const size_t joint = reader->depth > 0;

    (void)attributes;
    if (reader->refused)
        return;
    if (reader->depth == XML_DEPTH_MAX) {
        refuse(reader, "elements are nested too deeply");
        return;
    }
    if (length > XML_PATH_MAX - joint || reader->path_length > XML_PATH_MAX - joint - length) {
        refuse(reader, "names are too long");
        return;
    }
    if (joint > 0)
        reader->path[reader->path_length++] = '/';
    memcpy(reader->path + reader->path_length, local, length + 1);
    reader->path_length += length;
    reader->depth++;
    reader->has_elements = false;
    reader->text_length = 0;
}

static void XMLCALL text_follows(void *context, const XML_Char *bytes, int length)
{
    struct reader *reader = context;

    /* Text beside elements is only what makes XML readable. */
    if (reader->refused || reader->has_elements)
        return;
    if ((size_t)length > XML_TEXT_MAX - reader->text_length) {
        refuse(reader, "a text is too long");
        return;
    }
    memcpy(reader->text + reader->text_length, bytes, (size_t)length);
    reader->text_length += (size_t)length;
}

static void XMLCALL element_ends(void *context, const XML_Char *name)
{
    struct reader *reader = context;
    const size_t length = strlen(local_name(name));
    struct zt_text text = {NULL, 0};

    if (reader->refused)
        return;
    assert(reader->depth > 0 && reader->path_length >= length);
    if (!reader->has_elements) {
        reader->text[reader->text_length] = '\0';
        text = (struct zt_text){reader->text, reader->text_length};
    }
    if (!reader->visit(reader->context, reader->path, text)) {
        refuse(reader, "it is not what was expected");
        return;
    }
    reader->path_length -= length;
    if (--reader->depth > 0)
        reader->path_length--;
    reader->path[reader->path_length] = '\0';
    reader->has_elements = true;
}

static void XMLCALL doctype_begins(void *context, const XML_Char *name, const XML_Char *system_id,
                                   const XML_Char *public_id, int has_subset)
{
    (void)name;
    (void)system_id;
    (void)public_id;
    (void)has_subset;
    refuse(context, "it has a document type declaration");
}

static enum zt_status explain(struct reader *reader, struct zt_error *error)
{
    const enum XML_Error code = XML_GetErrorCode(reader->parser);
    const XML_Index at = XML_GetCurrentByteIndex(reader->parser);
    const char *why = reader->refused ? reader->refusal : XML_ErrorString(code);

    if (!reader->refused && code == XML_ERROR_NO_MEMORY)
        return zt_fail_memory(error, "XML");
    return zt_fail(error, ZT_INVALID, NULL, at < 0 ? ZT_NO_OFFSET : (uint64_t)at, "XML: %s",
                   why == NULL ? "not well formed" : why);
}

enum zt_status xml_read(struct zt_text document, xml_visitor *visit, void *context,
                        struct zt_error *error)
{
    struct reader *reader;
    enum zt_status status = ZT_OK;

    if (document.length > XML_DOCUMENT_MAX)
        return zt_fail(error, ZT_INVALID, NULL, ZT_NO_OFFSET, "XML: it is too long");
    reader = calloc(1, sizeof(*reader));
    if (reader == NULL)
        return zt_fail_memory(error, "XML");
    reader->visit = visit;
    reader->context = context;
    reader->parser = XML_ParserCreateNS(NULL, SEPARATOR);
    if (reader->parser == NULL) {
        free(reader);
        return zt_fail_memory(error, "XML");
    }
    XML_SetUserData(reader->parser, reader);
    XML_SetElementHandler(reader->parser, element_begins, element_ends);
    XML_SetCharacterDataHandler(reader->parser, text_follows);
    XML_SetStartDoctypeDeclHandler(reader->parser, doctype_begins);
    if (XML_Parse(reader->parser, document.bytes, (int)document.length, XML_TRUE) != XML_STATUS_OK)
        status = explain(reader, error);
    XML_ParserFree(reader->parser);
    explicit_bzero(reader->text, sizeof(reader->text));
    free(reader);
    return status;
}
