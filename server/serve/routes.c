/* The table of contents of the server: every path and method, in the order of the API page. */
#include "api/handlers.h"
#include "http/exchange/router.h"
#include "upload/shared/registry.h"
#include "upload/tus/tus.h"
#include "upload/whole/delete.h"
#include "upload/whole/put.h"
#include "upload/writer/writer.h"

/* tus requires the field on every answer. */
#define TUS_ROUTE .field = {"Tus-Resumable", TUS_VERSION}, .options = tus_options

/* The names of an operation's query parameters. */
#define TAKES(names) .parameters = names " " PARAMETERS_OF_ALL

/* The viewer, which asks for a token itself. */
#define PAGE_ROUTE .is_page = true, .needs_no_models = true, .audience = AUDIENCE_EVERYBODY

const struct route routes[] = {
    {.pattern = "/v1/models",
     .get = {.handle = models_list, TAKES("prefix match limit cursor parts pretty")}},
    {.pattern = "/v1/models/{model}",
     .get = {.handle = model_get, TAKES("prefix match fields attributes pretty")},
     .put = {.begin = model_put_begin,
             .receive = model_put_receive,
             .store = model_put_store,
             .digest = model_put_digest,
             .handle = model_put_handle},
     .delete = {.begin = model_delete_begin, .handle = model_delete_handle}},
    {.pattern = "/v1/models/{model}/objects/{object}",
     .get = {.handle = object_get, TAKES("fields pretty")}},
    {.pattern = "/v1/models/{model}/objects/{object}/{component}",
     .get = {.handle = component_get, TAKES("slice shard axis format representation dtype")}},
    {.pattern = "/v1/models/{model}/objects/{object}/{component}/statistics",
     .get = {.handle = statistics_get, TAKES("slice shard axis bins")}},
    {.pattern = "/v1/models/{model}/objects/{object}/{component}/preview",
     .get = {.handle = preview_get,
             TAKES("slice shard axis rows cols index reduce format map low high")}},
    {.pattern = "/v1/models/{model}/export",
     .get = {.handle = export_get, TAKES("format prefix match shard axis dtype")}},
    {.pattern = "/v1/models/{model}/verification",
     .get = {.handle = verification_get},
     .post = {.handle = verification_post, .needs = NEEDS_READ}},
    {.pattern = "/v1/models/{model}/uploads",
     .post = {.begin = writer_create_begin,
              .receive = writer_create_receive,
              .handle = writer_create_handle}},
    {.pattern = "/v1/uploads",
     .get = {.handle = uploads_list, .needs = NEEDS_ADMIN, TAKES("pretty")}},
    {.pattern = "/v1/uploads/{id}",
     .get = {.begin = writer_status_begin, .handle = writer_status_handle},
     .delete = {.begin = writer_delete_begin, .handle = writer_delete_handle}},
    {.pattern = "/v1/uploads/{id}/objects/{object}",
     .put = {.begin = writer_object_begin,
             .receive = writer_object_receive,
             .handle = writer_object_handle}},
    {.pattern = "/v1/uploads/{id}/objects/{object}/{component}",
     .put = {.begin = writer_put_begin,
             .receive = writer_put_receive,
             .store = writer_put_store,
             .digest = writer_put_digest,
             .handle = writer_put_handle,
             TAKES("dtype shape type encoding level digest")}},
    {.pattern = "/v1/uploads/{id}/commit",
     .post = {.begin = writer_commit_begin, .handle = writer_commit_handle}},
    {.pattern = "/v1/resumable",
     .post = {.begin = tus_create_begin,
              .receive = tus_create_receive,
              .store = tus_create_store,
              .digest = tus_create_digest,
              .keeps_parts = true,
              .handle = tus_create_handle},
     TUS_ROUTE},
    {.pattern = "/v1/resumable/{id}",
     .get = {.handle = tus_head_handle},
     .post = {.begin = tus_override_begin,
              .receive = tus_override_receive,
              .store = tus_override_store,
              .digest = tus_override_digest,
              .keeps_parts = true,
              .handle = tus_override_handle},
     .delete = {.begin = tus_delete_begin, .handle = tus_delete_handle},
     .patch = {.begin = tus_patch_begin,
               .receive = tus_patch_receive,
               .store = tus_patch_store,
               .digest = tus_patch_digest,
               .keeps_parts = true,
               .handle = tus_patch_handle},
     TUS_ROUTE},
    {.pattern = "/v1/blobs/sha256/{hex}", .get = {.handle = blob_get}},
    {.pattern = "/files/{path...}", .get = {.handle = files_get}, .ignores_parameters = true},
    {.pattern = "/healthz",
     .get = {.handle = healthz_get},
     .needs_no_models = true,
     .audience = AUDIENCE_EVERYBODY},
    {.pattern = "/readyz",
     .get = {.handle = readyz_get},
     .needs_no_models = true,
     .audience = AUDIENCE_EVERYBODY},
    {.pattern = "/metrics",
     .get = {.handle = metrics_get},
     .needs_no_models = true,
     .audience = AUDIENCE_METRICS},
    {.pattern = "/version", .get = {.handle = version_get}, .needs_no_models = true},
    {.pattern = "/openapi.json", .get = {.handle = openapi_get}, .needs_no_models = true},
    {.pattern = "/", .get = {.handle = root_get}, PAGE_ROUTE},
    {.pattern = "/ui", .get = {.handle = page_get}, PAGE_ROUTE},
    {.pattern = "/ui/assets/{path...}", .get = {.handle = asset_get}, PAGE_ROUTE},
    {.pattern = "/ui/{path...}", .get = {.handle = page_get}, PAGE_ROUTE},
};

const size_t route_count = sizeof(routes) / sizeof(routes[0]);
