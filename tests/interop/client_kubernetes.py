"""Checks objects against the types of the Kubernetes API: unknown fields, wrong types, missing fields, values outside an enum.

Reads a JSON array of objects from the file that is named, and prints a JSON array of what is wrong.
"""

import json
import re
import sys
from pathlib import Path

from kubernetes.client import models

SCALARS = {"str": str, "int": int, "bool": bool, "float": (int, float)}


def class_of(made):
    """apps/v1 Deployment is V1Deployment."""
    version = made["apiVersion"].rsplit("/", 1)[-1]
    return getattr(models, version[0].upper() + version[1:] + made["kind"], None)


def typed(value, kind, where, wrong):
    """The value as the type's own class, whose setters refuse what may not be."""
    if within := re.fullmatch(r"list\[(.+)\]", kind):
        if isinstance(value, list):
            return [typed(one, within[1], f"{where}[{index}]", wrong) for index, one in enumerate(value)]
    elif within := re.fullmatch(r"dict\(str, (.+)\)", kind):
        if isinstance(value, dict):
            return {key: typed(one, within[1], f"{where}.{key}", wrong) for key, one in value.items()}
    elif kind in SCALARS:
        if isinstance(value, SCALARS[kind]) and isinstance(value, bool) == (kind == "bool"):
            return value
    elif hasattr(models, kind):
        if isinstance(value, dict):
            return typed_object(value, getattr(models, kind), where, wrong)
    else:
        return value
    wrong.append(f"{where}: {value!r} is not of type {kind}")
    return value


def typed_object(value, made_class, where, wrong):
    names = {name: attribute for attribute, name in made_class.attribute_map.items()}
    wrong += [f"{where}.{name}: no such field" for name in value if name not in names]
    known = {names[name]: one for name, one in value.items() if name in names}
    members = {
        attribute: typed(one, made_class.openapi_types[attribute], f"{where}.{attribute}", wrong)
        for attribute, one in known.items()
    }
    try:
        return made_class(**members)
    except ValueError as error:
        wrong.append(f"{where}: {error}")
        return value


wrong = []
for made in json.loads(Path(sys.argv[1]).read_text()):
    name = f"{made['kind']} {made['metadata']['name']}"
    if class_of(made) is None:
        wrong.append(f"{name}: no such type")
    else:
        typed_object(made, class_of(made), name, wrong)
print(json.dumps(wrong))
