"""The benchmark card: what an open world is, in words for people."""

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

_MODELS = {
    "independent": "Each fact is known with probability {density:g}, on its own.",
    "node": "A fact is known with the product of the probabilities of its two entities, each N(mu, "
    "{spread:g}) cut to [0, 1], where mu makes the mean over all facts {density:g}.",
    "relation": "A fact is known with the probability of its relation, N(mu, {spread:g}) cut to [0, 1], "
    "where mu makes the mean over all facts {density:g}.",
    "popularity": "The odds that a fact is known are proportional to (facts of its head x facts of its "
    "tail)^{exponent:g}, scaled so that the mean probability over all facts is {density:g}.",
}
# More relations than this are for programs.
_FEW = 60

_FILES = """\
| file | what |
|---|---|
| `train.txt` | training facts: head, relation, tail, separated by tabs |
{valid}| `test_sparse.txt` | the sparse test: known facts that are not trained on |
| `missing.txt` | facts of the closed world that are not known |
| `test_full.txt` | the full test: `test_sparse.txt` and `missing.txt` |
| `queries.tsv` | the queries that are asked, and how many answers each test and training have |
| `qrels_sparse.txt`, `qrels_full.txt` | their answers in either test, as TREC judgements |
| `queries_sparse.txt`, `queries_full.txt` | the same as facts |
| `entities.dict`, `relations.dict` | id and label of everything in the closed world, trained on or not |
{layouts}| `metadata.json` | this card for programs, with the SHA-256 of every file |

Sets without facts have no file. Filter by what trains and validates, and by the other answers of the test
that is evaluated, as `owkg rank` and `owkg ranks convert` do.
"""

_ALPHA = """\
Alpha is the share of the full test that is in the sparse test: d (1 - t - v) / (1 - d (t + v)) of density d,
a share t that trains and a share v that validates. ± is one standard deviation of independent facts, and z
says how many of them the realised share is off.
"""
_UNLIKE = """\
Under this model relations differ in how much of them is known: z by relation says how far they are from
independent facts, not that something went wrong.
"""

_LOAD = """\
owkg, in this folder (`run` may be a model of your own: `--embeddings FILE --model NAME`):

```console
$ owkg train . --model complex{no_valid} --out run
$ {sparse}
$ {full}
$ owkg metrics sparse.parquet full.parquet
$ owkg ranks convert my.run --kg . --qrels qrels_full.txt --out full.parquet    # of a TREC run
```

```python
from owkg import kg

graph = kg.read_graph(".")
```

"""
_PYKEEN = """\
PyKEEN (the maps hold entities that no training fact has):

```python
from pykeen.triples import TriplesFactory


def ids(path):
    with open(path, encoding="utf-8") as lines:
        return {label: int(i) for i, label in (line.rstrip("\\n").split("\\t") for line in lines)}


maps = {"entity_to_id": ids("entities.dict"), "relation_to_id": ids("relations.dict")}
training = TriplesFactory.from_path("train.txt", **maps)
sparse = TriplesFactory.from_path("queries_sparse.txt", **maps)
full = TriplesFactory.from_path("queries_full.txt", **maps)
```
"""
_LIBKGE = """
LibKGE: copy `libkge/` to `data/NAME` of LibKGE and set `dataset.name: NAME`. The split `test` is the sparse
test, `test_full` the full one (`eval.split: test_full`).
"""
_OPENKE = """
OpenKE: `TrainDataLoader(in_path="openke/")`, `TestDataLoader("openke/")`, with the slash at the end.
`test2id.txt` is the sparse test; for the full one, put `test_full2id.txt` in its place.
"""
_STAND_IN = """
There is no validation set. The loaders of LibKGE and OpenKE fail without one, so there the first two training
facts stand in for it: filtering knows them anyway, and what is measured on them means nothing.
"""


def readme(card: dict[str, Any], *, layouts: Sequence[str], figure: str | None) -> str:
    """The text of the card of `describe`, with `versions` and `source`; `figure` is a file name, if any."""
    parts = [f"# Open-world benchmark at density {card['parameters']['density']:g}\n\n{_drawn(card)}"]
    parts += [f"![Answers a query in either test; alpha by relation]({figure})"] if figure else []
    parts += [_table([card]), _ALPHA, *card["notes"]]
    alike = "" if card["parameters"]["missing"]["model"] == "independent" else _UNLIKE
    parts += [f"## Relations\n\n{_relations(card)}", alike]
    valid = "| `valid.txt` | validation facts |\n" if "valid" in card["splits"] else ""
    no_valid = "" if valid else " --valid-every 0"
    folders = "".join(f"| `{name}/` | the same in another layout |\n" for name in layouts)
    parts += [
        f"## Files\n\n{_FILES.format(valid=valid, layouts=folders)}",
        f"## Loading\n\n{_LOAD.format(no_valid=no_valid, **card['commands'])}",
        _PYKEEN,
    ]
    parts += [text.strip() for name, text in (("libkge", _LIBKGE), ("openke", _OPENKE)) if name in layouts]
    parts += [_STAND_IN.strip()] if layouts and not valid else []
    parts += ["## Licence\n\nThat of the source."]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def readme_of_several(cards: dict[str, dict[str, Any]], shared: int) -> str:
    """The text that compares worlds of several densities, cards by folder, with so many `shared` queries."""
    first = next(iter(cards.values()))
    how = (
        "They are nested: a fact that is missing at one density is missing at every lower one, and what "
        "trains at one trains at every higher one."
        if first["parameters"]["nested"]
        else "They are drawn independently."
    )
    links = ", ".join(f"[{name}]({name}/README.md)" for name in cards)
    text = (
        f"{_source(first)} {how} {shared:,} queries are asked at all of them. Each folder has a card of "
        f"its own: {links}."
    )
    title = f"# Open-world benchmarks at {len(cards)} densities"
    return "\n\n".join([title, _filled(text), _table(list(cards.values()))]) + "\n"


def _filled(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _source(card: dict[str, Any]) -> str:
    source, counts = card["source"], card["counts"]
    file, digest = (f"`{source['file']}`", f"; SHA-256 `{source['sha256']}`") if source else ("a graph", "")
    return (
        f"Sampled by owkg {card['versions']['owkg']} from {file} ({counts['facts']:,} facts, "
        f"{counts['entities']:,} entities, {counts['relations']:,} relations{digest}), "
        "taken for a closed world: what it does not state is false."
    )


def _drawn(card: dict[str, Any]) -> str:
    set_ = card["parameters"]
    missing = dict(set_["missing"])
    model = _MODELS[missing.pop("model")].format(density=set_["density"], **missing)
    valid = f" and {set_['valid_rate']:g} validate" if set_["valid_rate"] else ""
    sides = "(head, relation, ?) and (?, relation, tail)" if set_["both_sides"] else "(head, relation, ?)"
    return _filled(
        f"{_source(card)} {model} Of the known facts, a share of {set_['train_rate']:g} train{valid}; the "
        "rest is the sparse test, and with all that is missing the full test. "
        f"Queries {sides} are drawn among those with at least "
        f"{set_['min_answers']:,} answers in the full test and one in the sparse test. Seed {set_['seed']}."
    )


def compared(cards: Sequence[dict[str, Any]]) -> list[list[str]]:
    """The rows of a table of cards of `describe`: what is counted, then its value in each world."""
    names = dict.fromkeys(name for card in cards for name in card["splits"])
    said: dict[str, Callable[[dict[str, Any]], str]] = {
        "density": lambda card: f"{card['parameters']['density']:g}",
        "density realised": lambda card: f"{card['density']['realised']:.4f}",
        "alpha expected": lambda card: f"{card['alpha']['expected']:.4f} ± {card['alpha']['deviation']:.4f}",
        "alpha realised": lambda card: f"{card['alpha']['realised']:.4f}",
        "z": lambda card: _number(card["alpha"]["z"], "+.2f"),
        **{f"facts in {name}": lambda card, name=name: f"{card['splits'].get(name, 0):,}" for name in names},
        "entities without a training fact": lambda card: f"{card['untrained']['entities']:,}",
        "relations without a training fact": lambda card: f"{card['untrained']['relations']:,}",
        "queries that may be asked": lambda card: f"{card['queries']['eligible']:,}",
        "queries": lambda card: f"{card['queries']['drawn']:,}",
        **{
            f"{name} answers: {value}": lambda card, of=name, key=key: f"{card['queries'][of][key]:,.4g}"
            for name in ("full", "sparse")
            for value, key in (("mean", "mean"), ("median", "median"), ("most", "max"))
        },
    }
    return [[what, *(say(card) for card in cards)] for what, say in said.items()]


def _table(cards: Sequence[dict[str, Any]]) -> str:
    first, *rest = ["| " + " | ".join(row) + " |" for row in compared(cards)]
    return "\n".join([first, "|---" * (len(cards) + 1) + "|", *rest])


def _relations(card: dict[str, Any]) -> str:
    categories = "; ".join(
        f"{name or 'without a training fact'}: {found['relations']:,}"
        for name, found in card["relation_categories"].items()
        if found["relations"]
    )
    text = f"By category (training facts): {categories}."
    if len(card["relations"]) > _FEW:
        return f"{text} Each of them is in `metadata.json`."
    header = ["relation", "category", "train", "sparse test", "missing", "alpha", "z"]
    rows = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    for name, row in card["relations"].items():
        cells = [name.replace("|", "\\|"), row["category"]]
        cells += [f"{row[part]:,}" for part in ("train", "test_sparse", "missing")]
        cells += [_number(row["alpha"], ".4f"), _number(row["z"], "+.2f")]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join([text, "", *rows])


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
