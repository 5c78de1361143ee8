"""Models of which each part has one tensor, `w1`, `w2` …: {path: bytes} of their files, with an index (last) or as a split
GGUF."""

import parts

INDEX = ".safetensors.index.json"


def safetensors(tensors):
    return parts.safetensors_part(list(tensors.items()))


def gguf(tensors):
    return parts.gguf_part(list(tensors.items()))


def part_names(stem, count, extension="safetensors"):
    return [parts.part_name(stem, number, count, extension) for number in range(1, count + 1)]


def parts_of(stem, contents):
    """{file: {tensor: bytes}}"""
    names = part_names(stem, len(contents))
    return {name: {f"w{number}": content} for number, (name, content) in enumerate(zip(names, contents), 1)}


def index_of(made, **changes):
    """The index of {file: {tensor: bytes}}; `changes` replaces entries of the map."""
    places = {name: file for file, tensors in made.items() for name in tensors}
    return parts.index_of({**places, **changes}, sum(len(value) for held in made.values() for value in held.values()))


def files_with_index(stem, contents):
    made = parts_of(stem.rsplit("/", 1)[-1], contents)
    folder = stem[: stem.rfind("/") + 1]
    files = {folder + name: safetensors(tensors) for name, tensors in made.items()}
    return {**files, stem + INDEX: index_of(made)}


def variant_index_names(stem, variant, kind="safetensors"):
    """As transformers, and as earlier releases of diffusers, name the index of a variant."""
    return f"{stem}.{kind}.index.{variant}.json", f"{stem}.{kind}.{variant}.index.json"


def files_with_variant_index(stem, variant, contents, form=0):
    *parts, (_, index) = files_with_index(f"{stem}.{variant}", contents).items()
    return {**dict(parts), variant_index_names(stem, variant)[form]: index}


def files_of_split(stem, contents):
    return parts.gguf_model(stem, [[(f"w{number}", content)] for number, content in enumerate(contents, 1)])


def files_of_split_in_capitals(stem, contents):
    return {path.replace(".gguf", ".GGUF"): content for path, content in files_of_split(stem, contents).items()}
