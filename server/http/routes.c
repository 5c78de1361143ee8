/* The server's table of contents: every path and method it answers, in the order of the API page. */
#include "api/blobs.h"
#include "api/components.h"
#include "api/export.h"
#include "api/files.h"
#include "api/models.h"
#include "api/objects.h"
#include "api/openapi.h"
#include "api/operations.h"
#include "api/verification.h"
#include "http/router.h"
#include "upload/upload.h"

const struct route routes[] = {
    {.pattern = "/v1/models", .get = {.handle = models_list}},
    {.pattern = "/v1/models/{model}",
     .get = {.handle = model_get},
     .put = {.begin = model_put_begin, .receive = model_put_receive, .handle = model_put_handle}},
    {.pattern = "/v1/models/{model}/objects/{object}", .get = {.handle = object_get}},
    {.pattern = "/v1/models/{model}/objects/{object}/{component}", .get = {.handle = component_get}},
    {.pattern = "/v1/models/{model}/export", .get = {.handle = export_get}},
    {.pattern = "/v1/models/{model}/verification",
     .get = {.handle = verification_get},
     .post = {.handle = verification_post}},
    {.pattern = "/v1/blobs/sha256/{hex}", .get = {.handle = blob_get}},
    {.pattern = "/files/{path...}", .get = {.handle = files_get}},
    {.pattern = "/healthz", .get = {.handle = healthz_get}},
    {.pattern = "/readyz", .get = {.handle = readyz_get}},
    {.pattern = "/version", .get = {.handle = version_get}},
    {.pattern = "/openapi.json", .get = {.handle = openapi_get}},
};

const size_t route_count = sizeof routes / sizeof routes[0];
