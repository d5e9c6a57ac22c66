"""`owkg family-tree generate` and `draw` as their users meet them."""

import json
import re
import shlex

import pytest

from family_tree import generate, sample_people, write_people
from owkg.cli.graphs.family_tree import family_tree_app

SMALL = "--num-trees 3 --max-tree-size 25 --max-depth 2 --max-branching 4"


@pytest.fixture
def call(call, tmp_path, monkeypatch):
    """As `call`, of a line of `owkg family-tree` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda line, *more: call("family-tree", *shlex.split(line), *more)


@pytest.fixture
def world(call, tmp_path):
    """Three families."""
    generate(tmp_path / "world", num_trees=3, max_tree_size=25)
    return tmp_path / "world"


def test_generate_prints_what_it_wrote(done, tmp_path):
    out = done(f"generate world {SMALL} --seed 5 --strict-depth --relations hohenecker")
    metadata = json.loads((tmp_path / "world" / "metadata.json").read_text())
    couples, facts = metadata["couples"], f"{metadata['facts']:,}"
    assert re.match(
        f"wrote world: 75 people, {couples} couples, 3 generations, {facts} facts in [0-9.]+ s\n", out
    )
    lines = [line.split() for line in out.splitlines()]
    assert all([name, f"{count:,}"] in lines for name, count in metadata["relations"].items())
    assert metadata["parameters"] == {
        "num_trees": 3,
        "max_tree_size": 25,
        "max_depth": 2,
        "max_branching": 4,
        "first_tree": 0,
        "seed": 5,
        "strict_depth": True,
        "relations": "hohenecker",
        "facts_format": "tsv",
    }


def test_generate_as_json_is_the_metadata_and_the_time(call, tmp_path):
    found = json.loads(call(f"generate world {SMALL} --first-tree 4 --facts-format parquet --format json")[1])
    seconds = found.pop("seconds")
    assert seconds > 0
    assert found == {"out": "world"} | json.loads((tmp_path / "world" / "metadata.json").read_text())
    assert (tmp_path / "world" / "facts.parquet").is_file()


def test_generate_overwrites_when_asked(call):
    assert call(f"generate world {SMALL}")[0] == 0
    assert call(f"generate world {SMALL}") == (
        2,
        "",
        "owkg: error: world: is there already; --overwrite replaces it as a whole.\n",
    )
    assert call(f"generate world {SMALL} --overwrite")[0] == 0


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_draw_from_a_folder(done, world, tmp_path, suffix):
    out = done(f"draw world --tree 2 --out new/tree.{suffix}")
    assert re.fullmatch(rf"wrote new/tree.{suffix}: 25 people, [45] generations\n", out)
    starts = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}
    assert (tmp_path / "new" / f"tree.{suffix}").read_bytes().startswith(starts[suffix])


def test_draw_on_the_spot_draws_the_tree_that_generate_writes(call, world, tmp_path):
    assert call("draw --max-tree-size 25 --tree 2 --out one.png")[0] == 0
    assert call("draw --max-tree-size 25 --tree 1 --out two.png")[0] == 0
    one, two = ((tmp_path / name).read_bytes() for name in ("one.png", "two.png"))
    assert one != two
    assert call("draw --max-tree-size 25 --tree 2 --out again.png")[0] == 0
    assert (tmp_path / "again.png").read_bytes() == one


def test_every_person_and_title_is_in_the_drawing(call, tmp_path):
    write_people(sample_people(num_trees=1, max_tree_size=12), tmp_path / "folder")
    assert call("draw folder --out tree.svg")[0] == 0
    text = (tmp_path / "tree.svg").read_text()
    drawn = re.findall("<!-- (.*?) -->", text)  # matplotlib's comment on each text that it draws as paths
    assert {f"{i:02d}" for i in range(12)} < set(drawn)
    assert "folder, family 0: 12 people, " in " ".join(drawn)
    assert {"female", "male"} < set(drawn)


def test_a_family_of_one_can_be_drawn(call):
    assert call("draw --max-tree-size 1 --out tree.png") == (
        0,
        "wrote tree.png: 1 people, 1 generations\n",
        "",
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("generate world --num-trees 0", "--num-trees must be a whole number of at least 1, got 0"),
        ("generate world --max-depth 0", "--max-depth must be a whole number of at least 1, got 0"),
        ("generate world --seed -1", "--seed must be a whole number of at least 0, got -1"),
        ("generate world --relations none.toml", "none.toml"),
        ("generate world --facts-format csv", "--facts-format"),
        ("draw --out tree.gif", "--out must end in .png, .pdf or .svg, got 'tree.gif'"),
        ("draw world --tree 3 --out tree.png", "--tree must be the number of a family, in [0, 3), got 3"),
        ("draw world --seed 3 --out tree.png", "--seed has no effect on the people in world"),
        ("draw world --strict-depth --out tree.png", "--strict-depth has no effect on the people in world"),
        ("draw none --out tree.png", "No such file or directory: 'none/people.tsv'"),
        ("draw --tree -1 --out tree.png", "--tree"),
        (
            "draw --max-tree-size 500 --out tree.png",
            "a family of 500 people cannot be drawn; it must have at most",
        ),
        ("draw --max-depth 0 --out tree.png", "--max-depth must be a whole number of at least 1, got 0"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(refused, world, tmp_path, line, message):
    before = sorted(file.name for file in tmp_path.iterdir())
    err = refused(line.replace("generate world", "generate other"))
    assert message in err
    assert sorted(file.name for file in tmp_path.iterdir()) == before


EXAMPLES = [
    line
    for command in family_tree_app.registered_commands
    for line in (command.epilog or "").splitlines()
    if line.startswith(("owkg family-tree generate", "owkg family-tree draw"))
]


def test_there_are_examples_of_both():
    assert {example.split()[2] for example in EXAMPLES} == {"generate", "draw"}


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_in_the_help_runs(done, tmp_path, example):
    if " draw " in example:
        generate(tmp_path / "world", num_trees=4, max_tree_size=30)
    out = done(example.removeprefix("owkg family-tree ").replace("--num-trees 200", "--num-trees 20"))
    assert out.startswith("wrote ")


def test_the_command_writes_what_the_function_writes(call, tmp_path):
    options = "--first-tree 4 --seed 2 --strict-depth --relations hohenecker"
    assert call(f"generate by_command {SMALL} {options}")[0] == 0
    limits = {"num_trees": 3, "max_tree_size": 25, "max_depth": 2, "max_branching": 4}
    generate(
        tmp_path / "by_function", **limits, first_tree=4, seed=2, strict_depth=True, relations="hohenecker"
    )
    names = sorted(path.name for path in (tmp_path / "by_function").iterdir())
    for name in names:
        assert (tmp_path / "by_command" / name).read_bytes() == (tmp_path / "by_function" / name).read_bytes()
    assert (tmp_path / "by_command" / "people.tsv").read_text().splitlines()[1].startswith("t000004_")
