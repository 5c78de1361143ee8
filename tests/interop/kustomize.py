"""What `kubectl apply -k` would apply: as much of kustomize as deploy/kubernetes uses, and an error for anything else.

Generated maps keep their names: the hash that kustomize appends is left out.
"""

import copy
import json
import re

import yaml

KINDS = {"kustomize.config.k8s.io/v1beta1": "Kustomization", "kustomize.config.k8s.io/v1alpha1": "Component"}


class NotUnderstood(Exception):
    pass


def require(condition, *what):
    if not condition:
        raise NotUnderstood(*what)


def build(folder, components=()):
    """The objects of a folder with a kustomization, with further components added."""
    objects = []
    add_folder(objects, folder)
    for component in components:
        add_folder(objects, component)
    return objects


def add_folder(objects, folder):
    path = folder / "kustomization.yaml"
    stated = yaml.safe_load(path.read_text())
    require(stated.pop("kind") == KINDS.get(stated.pop("apiVersion")), path)
    for name in stated.pop("resources", []):
        add_resource(objects, folder / name)
    # As kustomize does it: components change what the resources and generators of this folder have made, then come its patches.
    for generator in stated.pop("configMapGenerator", []):
        generate(objects, generator, path)
    for name in stated.pop("components", []):
        add_folder(objects, folder / name)
    for patch in stated.pop("patches", []):
        apply_patch(objects, patch, path)
    for image in stated.pop("images", []):
        set_image(objects, image, path)
    if "namespace" in stated:
        set_namespace(objects, stated.pop("namespace"))
    require(stated == {}, path, f"keys that this test does not know: {sorted(stated)}")


def add_resource(objects, path):
    require(path.exists(), path, "does not exist")
    if path.is_dir():
        add_folder(objects, path)
        return
    for made in yaml.safe_load_all(path.read_text()):
        require(find(objects, made["kind"], made["metadata"]["name"]) is None, path, "stands there twice")
        objects.append(made)


def find(objects, kind, name):
    return next((one for one in objects if (one["kind"], one["metadata"]["name"]) == (kind, name)), None)


def generate(objects, generator, path):
    require(set(generator) <= {"name", "behavior", "literals"}, path, generator)
    values = dict(literal.split("=", 1) for literal in generator["literals"])
    existing = find(objects, "ConfigMap", generator["name"])
    if generator.get("behavior", "create") == "create":
        require(existing is None, path, "creates a map that exists")
        metadata = {"name": generator["name"]}
        objects.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": values})
    else:
        require(generator["behavior"] == "merge" and existing is not None, path, "merges into a map that does not exist")
        existing["data"] |= values


def set_image(objects, image, path):
    require({"name"} < set(image) <= {"name", "newName", "newTag"}, path, image)
    pods = [made["spec"]["template"]["spec"] for made in objects if made["kind"] in ("Deployment", "Job")]
    for container in [container for pod in pods for container in pod.get("initContainers", []) + pod["containers"]]:
        name, tag = re.fullmatch(r"(.*?)(:[^/:]+)?", container["image"]).groups()
        if name == image["name"]:
            new_tag = f":{image['newTag']}" if "newTag" in image else tag or ""
            container["image"] = image.get("newName", name) + new_tag


def set_namespace(objects, namespace):
    for made in objects:
        made["metadata"]["namespace"] = namespace


def apply_patch(objects, patch, path):
    require(set(patch) == {"target", "patch"} and set(patch["target"]) == {"kind", "name"}, path, patch)
    target = find(objects, **patch["target"])
    require(target is not None, path, f"nothing is called {patch['target']}")
    for step in yaml.safe_load(patch["patch"]):
        apply_step(target, step, path)


def apply_step(target, step, path):
    """RFC 6902, add and replace."""
    require(set(step) == {"op", "path", "value"} and step["op"] in ("add", "replace"), path, step)
    *parents, last = [key.replace("~1", "/").replace("~0", "~") for key in step["path"].split("/")[1:]]
    for key in parents:
        target = target[int(key)] if isinstance(target, list) else target[key]
    value = copy.deepcopy(step["value"])
    if isinstance(target, list) and step["op"] == "add":
        require(last == "-", path, step)
        target.append(value)
    elif isinstance(target, list):
        target[int(last)] = value
    else:
        require(step["op"] == "add" or last in target, path, f"nothing to replace at {step['path']}")
        target[last] = value


def as_text(objects):
    """Comparable: the same objects in any order give the same text."""
    return "\n".join(sorted(json.dumps(one, sort_keys=True) for one in objects))
