/* The table of routes, except for the S3 API (s3_routes.c): every path and method. The first row
 * that matches a path answers. */
#include "api/handlers.h"
#include "api/revisions/handlers.h"
#include "http/exchange/router.h"
#include "hub/handlers.h"
#include "hub/write/handlers.h"
#include "hub/xet/handlers.h"
#include "upload/shared/registry.h"
#include "upload/tus/tus.h"
#include "upload/whole/delete.h"
#include "upload/whole/put.h"
#include "upload/writer/writer.h"

/* tus requires the field on every answer. */
#define TUS_ROUTE .field = {"Tus-Resumable", TUS_VERSION}, .options = tus_options

/* The names of an operation's query parameters. */
#define TAKES(names) .parameters = names " " PARAMETERS_OF_ALL

/* Paths of the Hub's clients. New client versions send new parameters, so unknown ones are
 * ignored. */
#define HUB_ROUTE .keeps_names = true, .ignores_parameters = true, .problems = PROBLEM_FORM_HUB

/* Addresses that are themselves permits (hub/write/lfs_permit.h), and addresses whose handlers
 * check a token issued by the server (hub/xet/token.h). */
#define PERMIT_ROUTE HUB_ROUTE, .audience = AUDIENCE_EVERYBODY

/* Kinds of repositories that do not exist here: refuses every request. */
#define NOTHING_OPERATION                                                          \
    {                                                                              \
        .begin = hub_no_repo_begin, .handle = hub_no_repo_get, .needs = NEEDS_READ \
    }
#define NOTHING_ROUTE                                                                        \
    .get = {.handle = hub_no_repo_get}, .put = NOTHING_OPERATION, .post = NOTHING_OPERATION, \
    .delete = NOTHING_OPERATION, HUB_ROUTE

/* Operations that existing repositories do not support. */
#define UNSUPPORTED_OPERATION                                     \
    {                                                             \
        .begin = hub_unsupported_begin, .handle = hub_no_repo_get \
    }

/* An export whose description is too long for an address. */
#define EXPORT_OF_BODY                                                                 \
    {                                                                                  \
        .begin = export_body_begin, .handle = export_body_handle, .needs = NEEDS_READ, \
        .is_read = true                                                                \
    }

/* The viewer, which asks for a token itself. */
#define PAGE_ROUTE .is_page = true, .needs_no_models = true, .audience = AUDIENCE_EVERYBODY

const struct route routes[] = {
    {.pattern = "/v1/models",
     .get = {.handle = models_list, TAKES("prefix match limit cursor parts pretty")}},
    {.pattern = "/v1/models/{model}",
     .get = {.handle = model_get, TAKES("prefix match fields attributes digests pretty")},
     .put = {.begin = model_put_begin, .handle = model_put_handle},
     .delete = {.begin = model_delete_begin, .handle = model_delete_handle, TAKES("purge")}},
    {.pattern = "/v1/models/{model}/objects/{object}",
     .takes_any_names = true,
     .get = {.handle = object_get, TAKES("fields pretty")}},
    {.pattern = "/v1/models/{model}/objects/{object}/{component}",
     .takes_any_names = true,
     .get = {.handle = component_get,
             TAKES("slice shard axis format representation dtype base coding")}},
    {.pattern = "/v1/models/{model}/objects/{object}/{component}/statistics",
     .takes_any_names = true,
     .get = {.handle = statistics_get, TAKES("slice shard axis bins")}},
    {.pattern = "/v1/models/{model}/objects/{object}/{component}/preview",
     .takes_any_names = true,
     .get = {.handle = preview_get,
             TAKES("slice shard axis rows cols index reduce format map low high")}},
    {.pattern = "/v1/models/{model}/export",
     .get = {.handle = export_get, TAKES("format prefix match shard axis dtype")},
     .post = EXPORT_OF_BODY,
     .query = EXPORT_OF_BODY,
     .field = {"Accept-Query", "application/json"}},
    {.pattern = "/v1/models/{model}/verification",
     .get = {.handle = verification_get},
     .post = {.handle = verification_post, .needs = NEEDS_READ}},
    {.pattern = "/v1/models/{model}/uploads",
     .post = {.begin = writer_create_begin, .handle = writer_create_handle}},
    {.pattern = "/v1/models/{model}/revisions",
     .get = {.handle = revisions_get, TAKES("revision limit cursor wait after pretty")}},
    {.pattern = "/v1/models/{model}/revisions/{name}",
     .get = {.handle = revision_get},
     .put = {.begin = revision_put_begin, .handle = revision_put_handle},
     .delete = {.begin = revision_delete_begin, .handle = revision_delete_handle}},
    {.pattern = "/v1/uploads",
     .get = {.handle = uploads_list, .needs = NEEDS_ADMIN, TAKES("pretty")}},
    {.pattern = "/v1/uploads/{id}",
     .get = {.begin = writer_status_begin, .handle = writer_status_handle},
     .delete = {.begin = writer_delete_begin, .handle = writer_delete_handle}},
    {.pattern = "/v1/uploads/{id}/objects/{object}",
     .put = {.begin = writer_object_begin, .handle = writer_object_handle}},
    {.pattern = "/v1/uploads/{id}/objects/{object}/{component}",
     .put = {.begin = writer_put_begin,
             .handle = writer_put_handle,
             TAKES("dtype shape type encoding level digest")}},
    {.pattern = "/v1/uploads/{id}/commit",
     .post = {.begin = writer_commit_begin, .handle = writer_commit_handle}},
    {.pattern = "/v1/resumable",
     .post = {.begin = tus_create_begin, .handle = tus_create_handle},
     TUS_ROUTE},
    {.pattern = "/v1/resumable/{id}",
     .get = {.handle = tus_head_handle},
     .post = {.begin = tus_override_begin, .handle = tus_override_handle},
     .delete = {.begin = tus_delete_begin, .handle = tus_delete_handle},
     .patch = {.begin = tus_patch_begin, .handle = tus_patch_handle},
     TUS_ROUTE},
    {.pattern = "/v1/upstreams", .get = {.handle = upstreams_list, TAKES("pretty")}},
    {.pattern = "/v1/upstreams/{upstream}/repositories",
     .get = {.handle = repositories_get, TAKES("pretty")},
     .delete = {.handle = repositories_delete, TAKES("repository")}},
    {.pattern = "/v1/upstreams/{upstream}/prefetch",
     .get = {.handle = prefetch_get, TAKES("repository revision pretty")},
     .post = {.handle = prefetch_post, TAKES("repository revision pretty")}},
    {.pattern = "/v1/blobs/sha256/{hex}", .get = {.handle = blob_get}},
    {.pattern = "/files/{path...}",
     .get = {.handle = files_get},
     .put = {.begin = file_put_begin, .handle = model_put_handle},
     .delete = {.begin = file_delete_begin, .handle = file_delete_handle},
     .ignores_parameters = true},
    {.pattern = "/files", .get = {.handle = files_redirect}, .ignores_parameters = true},
    {.pattern = "/files/", .get = {.handle = files_index_get}, .ignores_parameters = true},
    {.pattern = "/files/{path...}/",
     .get = {.handle = files_index_get},
     .ignores_parameters = true},
    {.pattern = "/healthz",
     .get = {.handle = healthz_get},
     .needs_no_models = true,
     .ignores_parameters = true,
     .audience = AUDIENCE_EVERYBODY},
    {.pattern = "/readyz",
     .get = {.handle = readyz_get},
     .needs_no_models = true,
     .ignores_parameters = true,
     .audience = AUDIENCE_EVERYBODY},
    {.pattern = "/metrics",
     .get = {.handle = metrics_get},
     .needs_no_models = true,
     .ignores_parameters = true,
     .audience = AUDIENCE_METRICS},
    {.pattern = "/version", .get = {.handle = version_get}, .needs_no_models = true},
    {.pattern = "/openapi.json", .get = {.handle = openapi_get}, .needs_no_models = true},
    {.pattern = "/", .get = {.handle = root_get}, PAGE_ROUTE},
    {.pattern = "/ui", .get = {.handle = page_get}, PAGE_ROUTE},
    {.pattern = "/ui/assets/{path...}", .get = {.handle = asset_get}, PAGE_ROUTE},
    {.pattern = "/ui/{path...}", .get = {.handle = page_get}, PAGE_ROUTE},
    {.pattern = "/api/models", .get = {.handle = hub_list_get}, HUB_ROUTE},
    {.pattern = "/api/models/{repo}/auth-check", .get = {.handle = hub_auth_get}, HUB_ROUTE},
    {.pattern = "/api/models/{repo}/refs", .get = {.handle = hub_refs_get}, HUB_ROUTE},
    {.pattern = "/api/models/{repo}/commits/{revision...}",
     .get = {.handle = hub_commits_get},
     HUB_ROUTE},
    {.pattern = "/api/models/{repo}/revision/{revision...}",
     .get = {.handle = hub_repo_get},
     HUB_ROUTE},
    {.pattern = "/api/models/{repo}/tree/{revision...}",
     .get = {.handle = hub_tree_get},
     .takes_empty_segments = true,
     HUB_ROUTE},
    {.pattern = "/api/models/{repo}/paths-info/{revision...}",
     .post = {.begin = hub_paths_begin, .handle = hub_paths_handle, .needs = NEEDS_READ},
     HUB_ROUTE},
    {.pattern = "/api/models/{repo}/preupload/{revision...}",
     .post = {.begin = hub_preupload_begin, .handle = hub_preupload_handle},
     HUB_ROUTE},
    {.pattern = "/api/models/{repo}/commit/{revision...}",
     .post = {.begin = hub_commit_begin, .handle = hub_commit_handle},
     HUB_ROUTE},
    {.pattern = "/api/models/{repo}/xet-write-token/{revision...}",
     .get = {.handle = xet_token_get, .needs = NEEDS_WRITE},
     HUB_ROUTE},
    {.pattern = "/api/models/{repo}/branch/{revision...}",
     .post = {.begin = hub_branch_begin, .handle = hub_refs_handle},
     .delete = {.begin = hub_branch_begin, .handle = hub_refs_handle},
     HUB_ROUTE},
    {.pattern = "/api/models/{repo}/tag/{revision...}",
     .post = {.begin = hub_tag_begin, .handle = hub_refs_handle},
     .delete = {.begin = hub_tag_begin, .handle = hub_refs_handle},
     HUB_ROUTE},
    {.pattern = "/api/models/{repo}/super-squash/{revision...}",
     .post = {.begin = hub_squash_begin, .handle = hub_refs_handle},
     HUB_ROUTE},
    {.pattern = "/api/models/{repo}/settings", .put = UNSUPPORTED_OPERATION, HUB_ROUTE},
    {.pattern = "/api/models/{repo}", .get = {.handle = hub_repo_get}, HUB_ROUTE},
    {.pattern = "/api/whoami-v2", .get = {.handle = hub_whoami_get}, HUB_ROUTE},
    {.pattern = "/api/repos/create",
     .post = {.begin = hub_create_begin, .handle = hub_create_handle},
     HUB_ROUTE},
    {.pattern = "/api/repos/delete", .delete = UNSUPPORTED_OPERATION, HUB_ROUTE},
    {.pattern = "/api/validate-yaml",
     .post = {.begin = hub_yaml_begin,
              .handle = hub_yaml_handle,
              .needs = NEEDS_READ,
              .ignores_body = true},
     HUB_ROUTE},
    {.pattern = "/{repo}.git/info/lfs/objects/batch",
     .post = {.begin = lfs_batch_begin, .handle = lfs_batch_handle},
     HUB_ROUTE},
    {.pattern = "/{repo}.git/info/lfs/objects/{oid}",
     .put = {.begin = lfs_put_begin, .handle = lfs_put_handle},
     .post = {.begin = lfs_complete_begin, .handle = lfs_complete_handle},
     PERMIT_ROUTE},
    {.pattern = "/{repo}.git/info/lfs/objects/{oid}/{part}",
     .put = {.begin = lfs_part_begin, .handle = lfs_part_handle},
     PERMIT_ROUTE},
    {.pattern = "/{repo}.git/info/lfs/verify",
     .post = {.begin = lfs_verify_begin, .handle = lfs_verify_handle},
     HUB_ROUTE},
    {.pattern = "/api/cas/{session}/v1/xorbs/default/{hash}",
     .post = {.begin = xet_xorb_begin, .handle = xet_xorb_handle},
     PERMIT_ROUTE},
    {.pattern = "/api/cas/{session}/v1/shards",
     .post = {.begin = xet_shard_begin, .handle = xet_shard_handle},
     PERMIT_ROUTE},
    {.pattern = "/api/cas/{path...}",
     .get = {.handle = xet_no_api_handle},
     .post = {.handle = xet_no_api_handle, .ignores_body = true},
     PERMIT_ROUTE},
    {.pattern = "/api/datasets/{path...}", NOTHING_ROUTE},
    {.pattern = "/api/spaces/{path...}", NOTHING_ROUTE},
    {.pattern = "/api/kernels/{path...}", NOTHING_ROUTE},
    {.pattern = "/api/{path...}", .get = {.handle = hub_no_repo_get}, HUB_ROUTE},
    {.pattern = "/datasets/{path...}", NOTHING_ROUTE},
    {.pattern = "/spaces/{path...}", NOTHING_ROUTE},
    {.pattern = "/kernels/{path...}", NOTHING_ROUTE},
    {.pattern = "/{repo}/resolve/{revision...}",
     .get = {.handle = hub_resolve_get},
     .takes_empty_segments = true,
     HUB_ROUTE},
    {.pattern = "/{repo}/raw/{revision...}",
     .get = {.handle = hub_resolve_get},
     .takes_empty_segments = true,
     HUB_ROUTE},
};

const size_t route_count = sizeof(routes) / sizeof(routes[0]);
