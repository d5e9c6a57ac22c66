"""The catalogue of metrics: an entry with an anchor for each name of the registries."""

from collections.abc import Iterable, Iterator

from sphinx.util.rst import escape

from owkg.ir.names import MEASURES
from owkg.metrics.registry import ADJUSTED, METRICS, OF_RANK_WEIGHTS, PLAIN, metric
from owkg.rank_weights.registry import RANK_WEIGHTS, Entry

_CHANCE = {"-": "none", "closed": "exact", "quadrature": "exact, by quadrature", "as M": "as of M"}
_FORMS = {"macro-M": "macro-{}", "aMi": "a{}i", "zM": "z{}", "cdf-zM": "cdf-z{}"}


def _of_family(entry: Entry) -> Iterator[str]:
    """The names of a family of another metric M, of all M that it takes."""
    form = _FORMS.get(entry.name)
    if entry.name == "aM":
        form = "a{}"
    if form is None:
        return
    for plain in RANK_WEIGHTS if entry.name == "macro-M" else PLAIN:
        name = form.format(plain.example)
        try:
            metric(name)
        except (TypeError, ValueError):
            continue
        better = {"aM": entry.better, "aMi": "smaller"}.get(entry.name, plain.better)
        if plain.better == better:
            yield name


def _lines(entry: Entry, names: Iterable[str]) -> Iterator[str]:
    """The lines of an entry."""
    names = list(dict.fromkeys(names))
    for name in names:
        yield f".. index:: ! {name}"
    yield ""
    yield f".. metric:: {entry.name}" if entry.name != "aM" else f".. metric:: {entry.name} ({entry.better})"
    for name in names:
        if name != entry.name:
            yield f"            {name}"
    yield ""
    yield f"   :Formula: {escape(entry.formula)}"
    better = "" if entry.better in ("-", "as M") else f", {entry.better} is better"
    yield f"   :Range: {escape(entry.range.replace('as M', 'as of M'))}{better}"
    yield f"   :Chance level: {escape(_CHANCE.get(entry.chance, entry.chance))}"
    if entry.aliases:
        yield f"   :Aliases: {', '.join(f'``{alias}``' for alias in entry.aliases)}"
    if entry.pykeen:
        yield f"   :PyKEEN: ``{entry.pykeen.format('K')}``"
    yield f"   :Source: {escape(entry.source)}"
    yield ""


def text() -> str:
    """The catalogue as Markdown, below the heading of its page."""
    parts = {
        "Means of a rank weight": RANK_WEIGHTS,
        "Other plain metrics": METRICS,
        "Metrics made of a rank weight M": OF_RANK_WEIGHTS,
        "Adjusted for chance": ADJUSTED,
        "Measures of judged lists": MEASURES,
    }
    lines = []
    for title, registry in parts.items():
        lines += [f"## {title}", "", "```{eval-rst}"]
        for entry in registry:
            names = [entry.example, *_of_family(entry)]
            lines += _lines(entry, [entry.name, *names] if "M" not in entry.name else names)
        lines += ["```", ""]
    return "\n".join(lines)
