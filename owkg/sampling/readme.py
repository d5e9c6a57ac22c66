"""Benchmark card of an open world, in words for people."""

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

_MODELS = {
    "independent": "Each fact is known with probability {density:g}, independently of other facts.",
    "node": "A fact is known with the product of the probabilities of its two entities, each N(mu, "
    "{spread:g}) cut to [0, 1], where mu makes the mean over all facts {density:g}.",
    "relation": "A fact is known with the probability of its relation, N(mu, {spread:g}) cut to [0, 1], "
    "where mu makes the mean over all facts {density:g}.",
    "popularity": "The odds that a fact is known are proportional to (facts of its head x facts of its "
    "tail)^{exponent:g}, scaled so that the mean probability over all facts is {density:g}.",
}
# Largest number of relations in a table for people.
_FEW = 60

_FILES = """\
| file | content |
|---|---|
| `train.txt` | training facts: head, relation, tail, separated by tabs |
{valid}| `test_sparse.txt` | sparse test: known facts that are not trained on |
| `missing.txt` | facts of the closed world that are not known |
| `test_full.txt` | full test: `test_sparse.txt` and `missing.txt` |
| `queries.tsv` | test queries, with the numbers of their answers in each test and in training |
| `qrels_sparse.txt`, `qrels_full.txt` | answers to these queries in each test, as TREC judgements |
| `queries_sparse.txt`, `queries_full.txt` | the same answers as facts |
| `entities.dict`, `relations.dict` | ids and labels of the closed world, including untrained ones |
{layouts}| `metadata.json` | this card for programs, with the SHA-256 of every file |

Sets without facts have no file. Filter by the training and validation facts and by the other answers of the
evaluated test, as `owkg rank` and `owkg ranks convert` do.
"""

_ALPHA = """\
Alpha is the share of the full test that is in the sparse test: d (1 - t - v) / (1 - d (t + v)) for density d,
training share t and validation share v. ± is one standard deviation under independent facts, and z is the
number of standard deviations between the realised and the expected share.
"""
_UNLIKE = """\
Under this model, relations differ in the share of their facts that is known. A large z of a relation shows
how far it is from independent facts; it is not an error.
"""

_LOAD = """\
With owkg, in this folder (for your own model, replace `run` by `--embeddings FILE --model NAME`):

```console
$ owkg train . --model complex{no_valid} --out run
$ {sparse}
$ {full}
$ owkg metrics sparse.parquet full.parquet
$ owkg ranks convert my.run --kg . --qrels qrels_full.txt --out full.parquet    # from a TREC run
```

```python
from owkg import kg

graph = kg.read_graph(".")
```

"""
_PYKEEN = """\
With PyKEEN (the maps include entities without a training fact):

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
With LibKGE, copy `libkge/` to `data/NAME` of LibKGE and set `dataset.name: NAME`. The split `test` is the
sparse test, and `test_full` is the full test (`eval.split: test_full`).
"""
_OPENKE = """
With OpenKE, use `TrainDataLoader(in_path="openke/")` and `TestDataLoader("openke/")`, with the slash at the
end. `test2id.txt` is the sparse test; for the full test, replace it by `test_full2id.txt`.
"""
_STAND_IN = """
There is no validation set. The loaders of LibKGE and OpenKE fail without one, so their folders use the first
two training facts instead: filtering knows these facts anyway, and values measured on them mean nothing.
"""


def readme(card: dict[str, Any], *, layouts: Sequence[str], figure: str | None) -> str:
    """Text of the card from `describe`, with `versions` and `source`; `figure` is a file name, if any."""
    parts = [f"# Open-world benchmark at density {card['parameters']['density']:g}\n\n{_drawn(card)}"]
    parts += [f"![Answers per query in each test; alpha by relation]({figure})"] if figure else []
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
    parts += ["## Licence\n\nThe licence of the source applies."]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def readme_of_several(cards: dict[str, dict[str, Any]], shared: int) -> str:
    """Text that compares worlds of several densities, with cards by folder and so many `shared` queries."""
    first = next(iter(cards.values()))
    how = (
        "They are nested: a fact that is missing at one density is missing at every lower density, and a "
        "training fact at one density is a training fact at every higher density."
        if first["parameters"]["nested"]
        else "They are drawn independently."
    )
    links = ", ".join(f"[{name}]({name}/README.md)" for name in cards)
    text = (
        f"{_source(first)} {how} {shared:,} queries are shared by all of them. Each folder has its own "
        f"card: {links}."
    )
    title = f"# Open-world benchmarks at {len(cards)} densities"
    return "\n\n".join([title, _filled(text), _table(list(cards.values()))]) + "\n"


def _filled(text: str) -> str:
    """Text wrapped to 120 columns."""
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _source(card: dict[str, Any]) -> str:
    """Sentence about the source of a world."""
    source, counts = card["source"], card["counts"]
    file, digest = (f"`{source['file']}`", f"; SHA-256 `{source['sha256']}`") if source else ("a graph", "")
    return (
        f"Sampled by owkg {card['versions']['owkg']} from {file} ({counts['facts']:,} facts, "
        f"{counts['entities']:,} entities, {counts['relations']:,} relations{digest}), "
        "taken as a closed world, in which all other facts are false."
    )


def _drawn(card: dict[str, Any]) -> str:
    """Paragraph about the sampling of a world."""
    set_ = card["parameters"]
    missing = dict(set_["missing"])
    model = _MODELS[missing.pop("model")].format(density=set_["density"], **missing)
    valid = f" and a share of {set_['valid_rate']:g} validates" if set_["valid_rate"] else ""
    sides = "(head, relation, ?) and (?, relation, tail)" if set_["both_sides"] else "(head, relation, ?)"
    return _filled(
        f"{_source(card)} {model} A share of {set_['train_rate']:g} of the known facts trains{valid}; the "
        "rest is the sparse test. The full test is the sparse test and all missing facts. "
        f"Queries {sides} are drawn among those with at least "
        f"{set_['min_answers']:,} answers in the full test and one in the sparse test. Seed {set_['seed']}."
    )


def compared(cards: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Rows of a table of cards from `describe`: name of a count, then its value in each world."""
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
    """Table of cards in Markdown."""
    first, *rest = ["| " + " | ".join(row) + " |" for row in compared(cards)]
    return "\n".join([first, "|---" * (len(cards) + 1) + "|", *rest])


def _relations(card: dict[str, Any]) -> str:
    """Categories of relations, and a table of the relations if they are few."""
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
    """Formatted number, or a dash for None."""
    return "-" if value is None else format(value, form)
