/* Unknown parameters are ignored, because clients add some (x-id), but a request for a
 * resource that does not exist here must not be answered with the object. */
#include "s3/s3api_operations.h"

#include <assert.h>

#include "http/exchange/s3api_error.h"
#include "http/fields/uri.h"

/* The sub-resources of buckets and objects. Those that this server has are found in the table of
 * operations first. */
static const char *const resources[] = {
    "abac",
    "accelerate",
    "acl",
    "analytics",
    "attributes",
    "cors",
    "delete",
    "encryption",
    "intelligent-tiering",
    "inventory",
    "legal-hold",
    "lifecycle",
    "location",
    "logging",
    "metadataConfiguration",
    "metadataInventoryTable",
    "metadataJournalTable",
    "metadataTable",
    "metrics",
    "notification",
    "object-lock",
    "ownershipControls",
    "policy",
    "policyStatus",
    "publicAccessBlock",
    "renameObject",
    "replication",
    "requestPayment",
    "restore",
    "retention",
    "select",
    "session",
    "tagging",
    "torrent",
    "uploadId",
    "uploads",
    "versioning",
    "versions",
    "website",
};

/* A value that cannot be decoded counts too: without its parameter, the request would be one for
 * the object. */
static bool has(struct request *request, const char *parameter)
{
    struct zt_text raw;

    return parameter == NULL || query_find(request_target(request), parameter, 0, &raw);
}

static bool fits(struct request *request, const struct s3api_operation *operation)
{
    const enum method method = request->method == METHOD_HEAD && operation->method == METHOD_GET
                                   ? METHOD_GET
                                   : request->method;

    assert(operation->operation.handle != NULL);
    return operation->method == method && has(request, operation->parameter) &&
           has(request, operation->second) &&
           (operation->header == NULL || request_header(request, operation->header) != NULL);
}

/* Returns the sub-resource that the query names, or NULL. */
static const char *resource_of(struct request *request)
{
    for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++)
        if (has(request, resources[i]))
            return resources[i];
    return NULL;
}

const struct operation *s3api_choose(struct request *request,
                                     const struct s3api_operation *operations, size_t count)
{
    const struct s3api_operation *found = NULL;
    const char *resource;

    assert(count > 0);
    for (size_t i = 0; i < count && found == NULL; i++)
        if (fits(request, &operations[i]))
            found = &operations[i];
    /* An operation without parameters must not take the place of one that is unknown. */
    resource = found == NULL || found->parameter == NULL ? resource_of(request) : NULL;
    if (resource != NULL)
        s3api_problem(request, S3API_NOT_IMPLEMENTED, "this server has no %s", resource);
    else if (found == NULL)
        s3api_problem(request, S3API_METHOD_NOT_ALLOWED,
                      "this method is not allowed for this resource");
    else
        return &found->operation;
    return NULL;
}
