"""`owkg conformance` as its users meet it."""

import json

RECORD = "docs/reproduction/conformance.json"


def test_owkg_alone(call):
    code, out, _ = call("conformance")
    assert code == 0
    assert "Conformance with 91 test cases" in out
    assert "owkg" in out
    code, out, _ = call("conformance", "--adapter", "owkg", "--format", "json", "--failed")
    said = json.loads(out)
    assert (code, said["failed"]) == (0, [])
    assert said["libraries"][0]["pass"] == said["vectors"] == 91


def test_results_of_other_libraries(call, answer, request):
    path = request.config.rootpath / RECORD
    code, out, _ = call("conformance", "--results", path, "--failed")
    assert code == 0
    assert all(text in out for text in ("PyKEEN", "Wrong numbers", "scores-nan-answer", "none"))
    said = answer("conformance", "--results", path, "--failed")
    assert {row["verdict"] for row in said["failed"]} == {"fail", "error"}
    assert len(said["libraries"]) == len(json.loads(path.read_text()))


def test_bad_input_is_one_line(refused, tmp_path):
    (tmp_path / "x.json").write_text("[1]")
    for arguments, text in (
        (("--adapter", "nothing"), "--adapter must be one of owkg, pykeen"),
        (("--results", tmp_path / "x.json"), "must hold results"),
        (("--results", tmp_path / "y.json"), "y.json"),
    ):
        err = refused("conformance", *arguments)
        assert text in err
        assert len(err.splitlines()) == 1
