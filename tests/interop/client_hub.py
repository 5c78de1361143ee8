"""Functions of huggingface_hub, called by name: a JSON object on standard input says which and with what, and the last line
printed is its value or what it raised."""

import json
import sys

import huggingface_hub
from huggingface_hub import CommitOperationAdd, CommitOperationCopy, CommitOperationDelete, HfApi, HfFileSystem

API = HfApi()


def snapshot(repo, **options):
    return huggingface_hub.snapshot_download(repo, **options)


def download(repo, file, **options):
    return huggingface_hub.hf_hub_download(repo, file, **options)


def from_cache_only(repo, file):
    return huggingface_hub.hf_hub_download(repo, file, local_files_only=True)


def file_metadata(repo, file, revision=None):
    found = huggingface_hub.get_hf_file_metadata(huggingface_hub.hf_hub_url(repo, file, revision=revision))
    return {"commit": found.commit_hash, "etag": found.etag, "size": found.size, "location": found.location}


def model_info(repo, **options):
    info = API.model_info(repo, **options)
    siblings = {
        one.rfilename: {"size": one.size, "sha256": one.lfs["sha256"] if one.lfs else None} for one in info.siblings
    }
    return {"id": info.id, "sha": info.sha, "siblings": siblings}


def shown(entry):
    if not hasattr(entry, "size"):
        return {"type": "directory"}
    commit = entry.last_commit and entry.last_commit.oid
    lfs = entry.lfs and {"sha256": entry.lfs.sha256, "size": entry.lfs.size}
    return {"type": "file", "size": entry.size, "blob_id": entry.blob_id, "lfs": lfs, "commit": commit}


def tree(repo, path=None, **options):
    return {entry.path: shown(entry) for entry in API.list_repo_tree(repo, path, **options)}


def paths_info(repo, paths, **options):
    return {entry.path: shown(entry) for entry in API.get_paths_info(repo, paths, **options)}


def list_files(repo, **options):
    return API.list_repo_files(repo, **options)


def refs(repo):
    found = API.list_repo_refs(repo)
    return {"branches": {one.ref: one.target_commit for one in found.branches}, "tags": [one.ref for one in found.tags]}


def targets(repo):
    """The commits of all branches, and of all tags."""
    found = API.list_repo_refs(repo)
    return [{one.name: one.target_commit for one in kind} for kind in (found.branches, found.tags)]


def commits(repo, **options):
    return [{"id": one.commit_id, "title": one.title} for one in API.list_repo_commits(repo, **options)]


def log(repo, **options):
    return [
        {"title": one.title, "message": one.message, "authors": one.authors, "formatted": one.formatted_title}
        for one in API.list_repo_commits(repo, **options)
    ]


def create_tag(repo, tag, **options):
    return API.create_tag(repo, tag=tag, **options)


def delete_tag(repo, tag):
    return API.delete_tag(repo, tag=tag)


def create_branch(repo, branch, **options):
    return API.create_branch(repo, branch=branch, **options)


def delete_branch(repo, branch):
    return API.delete_branch(repo, branch=branch)


def squash(repo, **options):
    return API.super_squash_history(repo, **options)


def list_models(**options):
    return [one.id for one in API.list_models(**options)]


def exists(repo, *files):
    """Of the repository, and of each file."""
    return [API.repo_exists(repo), *(API.file_exists(repo, file) for file in files)]


def safetensors_metadata(repo):
    found = huggingface_hub.get_safetensors_metadata(repo)
    files = {name: sorted(file.tensors) for name, file in found.files_metadata.items()}
    return {"sharded": found.sharded, "files": files, "parameters": found.parameter_count}


def glob(pattern):
    return HfFileSystem().glob(pattern)


def folder_listing(path):
    return {entry["name"]: entry["type"] for entry in HfFileSystem().ls(path)}


def read_part(path, begin, length):
    with HfFileSystem().open(path, "rb", block_size=1 << 16) as file:
        file.seek(begin)
        return file.read(length).hex()


def whoami():
    return API.whoami()["name"]


def create(repo, **options):
    return str(API.create_repo(repo, **options))


def upload_file(repo, source, path, **options):
    return API.upload_file(repo_id=repo, path_or_fileobj=source, path_in_repo=path, **options).oid


def upload_folder(repo, folder, **options):
    return API.upload_folder(repo_id=repo, folder_path=folder, **options).oid


def delete_file(repo, path):
    return API.delete_file(path, repo).oid


def delete_folder(repo, path):
    return API.delete_folder(path, repo).oid


def commit(repo, added=None, deleted=(), **options):
    """Several changes in one commit: {path: text}, and paths to delete."""
    operations = [CommitOperationAdd(path, text.encode()) for path, text in (added or {}).items()]
    operations += [CommitOperationDelete(path) for path in deleted]
    return API.create_commit(repo, operations, commit_message="several changes", **options).oid


def copy(repo, source, path, **options):
    operations = [CommitOperationCopy(src_path_in_repo=source, path_in_repo=path)]
    return API.create_commit(repo, operations, commit_message="a copy", **options).oid


def copy_path(source, path):
    return HfFileSystem().cp_file(source, path)


def answer(function, arguments, options):
    try:
        return {"value": globals()[function](*arguments, **options)}
    except Exception as error:
        return {"raised": [[one.__name__ for one in type(error).__mro__], str(error)]}


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    print()
    print(json.dumps(answer(**asked), default=str))
