"""Files with known outcomes ($ZT_CORPUS), all in one root: over HTTP each has the outcome that its expected.tsv states."""

import hashlib
import shutil

import pytest

from corpus_outcomes import corpus_files, expected_components, expected_outcomes
from wire import assert_problem, get, manifest, model_path, verify

# A real file that holds one name twice; it is refused, since names must be unique.
REFUSED_GOLDEN = {"golden/v0.1/dup-names"}
# Of a format that is named and not read: a tar of before PyTorch 0.1.10.
KNOWN_UNREAD = {"pt/tar"}
GOLDEN_VERSIONS = {"v0.1": "0.1.0", "v1.0": "1.0", "v1.1": "1.1.0", "v1.2": "1.2.0", "v2": "2"}


@pytest.fixture(scope="module")
def server(corpus, folder, share_server):
    for path in corpus_files(corpus):
        target = folder / path.relative_to(corpus)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    return share_server(folder)


@pytest.fixture(scope="module")
def outcomes(corpus):
    found = {str(path.relative_to(corpus).with_suffix("")): outcome for path, outcome in expected_outcomes(corpus)}
    assert found
    return found


@pytest.fixture(scope="module")
def listed(server):
    models, cursor = {}, ""
    while cursor is not None:
        page = get(server, f"/v1/models?limit=1000{cursor}").json()
        models |= {model["name"]: model for model in page["models"]}
        cursor = f"&cursor={page['next']}" if page["next"] else None
    return models


def of(outcomes, wanted):
    return [name for name, outcome in outcomes.items() if outcome == wanted]


def failures(names, check):
    """Every file that fails the check, so that one run reports them all."""
    failed = {}
    for name in names:
        try:
            check(name)
        except AssertionError as error:
            failed[name] = str(error)[:300]
    return failed


def shards_are_there(server, name):
    """False for a model that needs shards which the corpus lacks: the server reports that, and the file is not at fault."""
    answer = get(server, model_path(name))
    return answer.status == 200 or b"shard" not in answer.body


def test_accepted_files_show_their_manifest_and_serve_their_components(server, outcomes, listed):
    def check(name):
        answer = get(server, model_path(name))
        assert answer.status == 200 and "error" not in listed[name], answer
        objects = answer.json()["objects"].values()
        assert listed[name]["objects"] == len(objects)
        for component in (one for shown in objects for one in shown["components"].values() if "shard" not in one):
            answer = get(server, component["href"])
            if answer.status != 200:
                assert_problem(answer, 422, "unsupported-encoding")
            elif "uncompressed_length" in component:
                assert len(answer.body) == component["uncompressed_length"]

    names = [name for name in of(outcomes, "accept") if shards_are_there(server, name)]
    assert len(names) >= len(of(outcomes, "accept")) - 5
    assert failures(names, check) == {}


def test_components_are_served_as_torch_reads_them(server, corpus, outcomes):
    accepted = of(outcomes, "accept")
    listed = [row for row in expected_components(corpus, "pt") if f"pt/{row[0].removesuffix('.pt')}" in accepted]
    assert len(listed) > 400

    def check(row):
        file, thing, component, dtype, kind, shape, sha256 = row
        shown = get(server, model_path(f"pt/{file.removesuffix('.pt')}")).json()["objects"][thing]
        entry = shown["components"][component]
        assert entry["dtype"] == dtype and entry.get("type", dtype) == kind
        assert len(shown["components"]) > 1 or tuple(shown["shape"]) == shape
        body = get(server, entry["href"]).body
        assert hashlib.sha256(body).hexdigest() == sha256

    assert failures(listed, check) == {}


EXTERNAL = pytest.mark.folder("external data of ONNX is looked for in folders only")


@pytest.mark.parametrize("is_external", [False, pytest.param(True, marks=EXTERNAL)], ids=["whole", "external"])
def test_components_of_onnx_are_served_as_listed(server, corpus, is_external):
    rows = [row for row in expected_components(corpus, "onnx") if ("-external" in row[0]) == is_external]
    assert rows

    def check(row):
        file, thing, component, dtype, kind, shape, sha256 = row
        shown = get(server, model_path(f"onnx/{file.removesuffix('.onnx')}")).json()["objects"][thing]
        entry = shown["components"][component]
        assert (entry["dtype"], entry["type"], tuple(shown["shape"])) == (dtype, kind, shape)
        assert hashlib.sha256(get(server, entry["href"]).body).hexdigest() == sha256

    assert failures(rows, check) == {}


def test_the_description_names_every_format(server, listed):
    schemas = get(server, "/openapi.json").json()["components"]["schemas"]
    formats = {model["format"] for model in listed.values() if "format" in model}
    assert len(formats) > 2
    for schema in ("ModelEntry", "Source"):
        assert formats <= set(schemas[schema]["properties"]["format"]["enum"])


def test_rejected_files_report_rule_and_offset(server, outcomes, listed):
    def check(name):
        problem = assert_problem(get(server, model_path(name)), 422, "invalid-model")
        assert problem["rule"]
        assert isinstance(problem["offset"], int)
        assert listed[name]["error"]["code"] == "invalid-model"

    assert failures([name for name in of(outcomes, "reject") if name not in KNOWN_UNREAD], check) == {}


def test_files_with_wrong_contents_open_and_fail_verification(server, outcomes):
    def check(name):
        assert get(server, model_path(name)).status == 200
        assert verify(server, name)["state"] == "failed"

    assert failures(of(outcomes, "verify-fails"), check) == {}


def test_accepted_files_do_not_fail_verification(server, outcomes):
    def check(name):
        state = verify(server, name)
        assert state["state"] == "verified", state

    names = [name for name in of(outcomes, "accept") if shards_are_there(server, name)]
    assert failures(names, check) == {}


def test_data_shards_are_not_models(server, outcomes, listed):
    def check(name):
        assert name not in listed
        assert_problem(get(server, model_path(name)), 404, "model-not-found")
        assert get(server, f"/files/{name}.zt").status == 200

    assert failures(of(outcomes, "data-shard"), check) == {}


def test_files_of_the_real_writers_are_served(server, corpus, folder):
    def check(name):
        if name in REFUSED_GOLDEN:
            assert_problem(get(server, model_path(name)), 422, "invalid-model")
            return
        shown = manifest(server, name)
        assert shown["source"]["version"] == GOLDEN_VERSIONS[name.split("/")[1]]
        for component in (one for thing in shown["objects"].values() for one in thing["components"].values()):
            if component["encoding"] in ("raw", "zstd", "zt.zstd-seekable/1"):
                assert get(server, component["href"]).status == 200, component
        assert verify(server, name)["state"] == "verified"

    names = [str(path.relative_to(folder).with_suffix("")) for path in folder.glob("golden/v*/*.zt")]
    assert names
    assert failures(names, check) == {}
