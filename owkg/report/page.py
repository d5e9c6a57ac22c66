"""The report as one HTML page that loads nothing from the network."""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from owkg.auditing.result import TURNED, Audit
from owkg.files.storage import address_limit
from owkg.report import answer as answers
from owkg.report import tables, words
from owkg.report.charts import charts
from owkg.report.words import NONE
from owkg.terminal.tables import plain_text

# Cells of all maps together; if there are more, every other sparsity or correlation is left out.
_CELLS = 100_000
# Facts to judge that the page lists: in all, and for one pair at least and at most.
_FACTS, _FEWEST, _MOST = 1000, 3, 20
# Largest number of columns in the table of power.
_COUNTS = 8
# Largest number of pairs of a kind that a sentence names.
_NAMED = 3

# Only scripts that owkg wrote into the page run. Vega evaluates its expressions with an interpreter (`ast` in
# page.js), so no text is evaluated as a script either.
_POLICY = (
    "default-src 'none'; script-src {scripts}; style-src {styles}; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)


class _Curves(NamedTuple):
    """Numbers of each pair over the same points.

    Attributes:
        axes: the points of each axis, increasing.
        values: [pairs, *axes]; NaN where there is none.
    """

    axes: list[np.ndarray]
    values: np.ndarray


def html(audit: Audit, *, title: str = "", date: str | None = None) -> str:
    """An HTML page on whether the order of the models is safe, with its assumptions, figures and tables.

    The page is one file of about 1 MB and needs no network. With 12 models and 5 metrics (330 pairs) it has 2
    MB.

    Args:
        audit: audit to report.
        title: text above the heading, such as the name of the data set. Default: none.
        date: date of the report. Default: today, by UTC.

    Returns:
        HTML with names and title escaped.

    Raises:
        ValueError: if Altair is not installed.
    """
    ready = words.prepared(audit)
    models, labels = ready.models["model"].n_unique(), words.labels(ready)
    box, left_out = _thinned(
        _curves(ready.pairs, ready.box, ["sparsity", "correlation_difference"], "probability")
    )
    power = _curves(ready.pairs, ready.power, ["queries"], "wrong_order")
    called = [f"{first} – {second}, {label}" for first, second, label in _named(ready.pairs)]
    numbers = _numbers(ready, labels, box, power) | {"charts": charts(models)}
    said = ready.assumptions
    pairs = tables.pairs_table(ready)
    sections = [
        _section("answer", "Answer", _answers(ready, labels) + _EXPLORED),
        _section("next", "Next steps", _steps(ready, labels)),
        _section(
            "assumed",
            "Assumptions",
            _listed(words.assumed(said)),
            _inputs(box) if len(ready.box) else "",
            _folded("Notes", *map(_said, said.get("notes") or ())),
        ),
        _section("models", "Leaderboard", _figure("models", "Values of the models with intervals", _KINDS)),
        _section(
            "grid",
            "How each order changes with the sparsity",
            _CHOICE,
            _figure("grid", "Complete-test metric implied at each sparsity", _KEY + _SEEN),
        ),
        _section(
            "box",
            "Which model is better, by sparsity and correlation",
            _figure("box", "Map of the probability that the first is better", _MAP_NOTE + left_out),
            _POINT,
        ),
        _section(
            "pairs",
            "All pairs",
            _table(pairs, sortable=True),
            _listed(answers.legend(ready), "legend"),
            _folded("All verdicts", _listed(list(answers.DEFINITIONS.items()), "legend")),
        ),
        _section("paste", "Write it in a paper", _pastes(ready, labels)),
        _section(
            "more",
            "More",
            _folded(
                "Numbers of the figures",
                _table(tables.models_table(ready)),
                _table(tables.grid_table(ready)),
                _map(box, called),
            ),
            _folded(
                "How many missing answers reverse an order",
                _said(_BREAKDOWN + words.labels_text(said)),
                _table(tables.breakdown_table(ready)),
                _facts(ready, called),
            ),
            _folded(
                "How many queries tell two models apart",
                _said(_POWER),
                _figure("power", "Probability of the wrong order by number of queries", _PAIR),
                _powers(power, ready.pairs),
            ),
            *(
                [_folded("Which metric needs the fewest queries", _said(_WEIGHTS), _table(weights))]
                if (weights := tables.weights_table(ready)).rows
                else []
            ),
            *(
                [
                    _folded(
                        "Results of judging",
                        _said(words.judged_text(said)),
                        _table(tables.judged_table(ready)),
                    )
                ]
                if len(ready.judged)
                else []
            ),
            *(
                [
                    _folded(
                        "If you judge more", _said(words.plans_rest(said)), _table(tables.plans_table(ready))
                    )
                ]
                if len(ready.plans)
                else []
            ),
            _folded("Protocol", _listed(words.protocol(said))),
            _folded("Glossary", _listed(list(answers.GLOSSARY.items()), "legend")),
        ),
    ]
    here = Path(__file__)
    style = f"\n{here.with_suffix('.css').read_text(encoding='utf-8')}"
    own = f"\n{here.with_suffix('.js').read_text(encoding='utf-8')}"
    bundle = _bundle().replace("</script", r"<\/script").replace("<!--", r"<\!--")
    bundle = bundle.replace("\r\n", "\n").replace("\r", "\n")  # as HTML is read
    heading = (
        f"Is the ranking of {'these' if models > 1 else 'this'} {models} model{'s' * (models > 1)} safe?"
    )
    return _PAGE.format(
        policy=_POLICY.format(scripts=f"{_hashed(bundle)} {_hashed(own)}", styles=_hashed(style)),
        title=_text(title or heading),
        above=f'<p class="note above">{_text(title)}</p>' if title else "",
        heading=heading,
        style=style,
        head=_text(_about(said, date or f"{datetime.now(UTC):%Y-%m-%d}")),
        sections="\n".join(sections),
        numbers=_json(numbers),
        bundle=bundle,
        script=own,
    )


def _about(said: Mapping[str, Any], date: str) -> str:
    """Queries, answers, date and version in one line."""
    counts = [f"{said[name]:,} {name}" for name in ("queries", "answers") if said.get(name) is not None]
    version = (said.get("versions") or {}).get("owkg")
    return " · ".join([*counts, date, *([f"owkg {version}"] if version else [])])


def _hashed(text: str) -> str:
    """Name of a script or a style sheet with this text in a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<svg class="defs" aria-hidden="true"><defs><pattern id="hatch" width="7" height="7" \
patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="7" height="7" fill="#FFFFFF" \
fill-opacity=".45"/><path d="M0 0V7" stroke="#444444" stroke-width="1.6" stroke-opacity=".7"/>\
</pattern></defs></svg>
<header>
{above}<h1>{heading}</h1>
<p class="note">{head}</p>
</header>
<div class="bar"><form>
<label>Metric <select id="metric"></select></label>
<button type="button" id="theme" aria-label="Change between light and dark">Dark</button>
</form></div>
<main>
{sections}
<noscript><p>Charts need JavaScript. The tables hold the same numbers.</p></noscript>
</main>
<footer>Made by owkg. This page needs no network.</footer>
<script type="application/json" id="numbers">{numbers}</script>
<script>{bundle}</script>
<script>{script}</script>
</body>
</html>
"""

_FIRST, _SECOND, _METRIC = (f'<b data-name="{name}"></b>' for name in ("first", "second", "metric"))
_PAIR = f"{_FIRST} against {_SECOND}, {_METRIC}."
_KINDS = (
    '<span><i class="first"></i>circles: on the known answers</span>'
    '<span><i class="second"></i>diamonds: complete test, implied where a sparsity is stated</span>'
)
_KEY = f'<span><i class="first"></i>{_FIRST}</span><span><i class="second dashed"></i>{_SECOND}</span>'
_SEEN = (
    "<span><i></i>other models</span> Dotted: the value on the known answers. Bands: intervals. "
    "Shaded: the stated sparsity. Vertical line: the sparsity below which the order is sure."
)
_MAP_NOTE = (
    f"{_METRIC}. Blue: {_FIRST} is better. Orange: {_SECOND}. Hatched: outside the range you stated. "
    "Where nothing is drawn, no such correlation is feasible."
)
_CHOICE = '<p class="choice"><label>Pair <select id="pair"></select></label></p>'
_EXPLORED = (
    '<p id="explored" hidden>These are other assumptions than yours. '
    '<button type="button" id="back">Back to the audit</button></p>'
)
_POINT = (
    '<p id="point" aria-live="polite"></p><p class="inputs">'
    '<label>Sparsity <input type="range" id="point-x" min="0" value="0"></label>'
    '<label>Correlation, second minus first <input type="range" id="point-y" min="0" value="0"></label></p>'
)
_WEIGHTS = (
    "Number of queries like these that show the right order with probability 0.95. The focus is the share of "
    "a weight on the first rank. The best weight is fitted to these queries; the last column scores each "
    "half of them with the weight of the other half."
)
_BREAKDOWN = (
    "At least: no set of fewer missing answers reverses the order. Set found: a set of so many does. "
    "A missing triple may be two of them, an answer to its head query and one to its tail query. "
    "Share: the first number, divided by these and the known answers together."
)
_POWER = "This assumes that the observed difference is the true one. Missing answers have no part in it."


# Bytes of address space that the JavaScript engine of vl-convert reserves; with fewer it ends the process.
_ADDRESSES = 100 * 10**9


def require_html() -> None:
    """Early check, before long work, that an HTML report can be made here.

    Raises:
        ValueError: if a package is not installed, or the process may not reserve enough address space.
    """
    try:
        import altair  # noqa: F401
        import vl_convert  # noqa: F401
    except ImportError:
        raise ValueError("an HTML report needs vl-convert: `pip install 'owkg[report]'`.") from None
    most = address_limit()
    if most is not None and most < _ADDRESSES:
        raise ValueError(
            f"an HTML report needs addresses for {_ADDRESSES / 1e9:.0f} GB, and `ulimit -v` allows "
            f"{most / 1e9:.3g} GB; a report that ends in .md or .tex needs none."
        )


def _bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, which serves all charts."""
    require_html()
    import altair as alt
    from vl_convert import javascript_bundle

    version = ".".join(alt.VEGALITE_VERSION.split(".")[:2])
    return javascript_bundle(vl_version=version)  # pyright: ignore[reportCallIssue]: not as it is declared


def _numbers(ready: Audit, labels: list[str], box: _Curves, power: _Curves) -> dict[str, Any]:
    """Numbers that the charts draw, except the maps of pairs, which the page has in a table."""
    said = ready.assumptions
    level = said.get("level") or 0.95
    values = ready.models.select(
        "place", "model", "value", "ci_low", "ci_high", "full", "full_low", "full_high"
    )
    grid = ready.grid.select("place", "model", "sparsity", "full", "full_low", "full_high")
    return {
        "labels": [plain_text(label) for label in labels],
        "models": _short(values),
        "grid": _short(grid),
        "pairs": [
            {
                "id": i,
                "place": row["place"],
                "first": plain_text(row["first"]),
                "second": plain_text(row["second"]),
                "required": row["required_queries"],
                "breaks": row["breakdown_sparsity"],
                "certified": row["certified"],
                "p": words.p_said(row["p_value"]),
                "turned": row["verdict"] == TURNED,
                "shown": answers.is_shown(row, level),
                "stated": words.limits(said, row["first"], row["second"]),
            }
            for i, row in enumerate(ready.pairs.iter_rows(named=True))
        ],
        "power": [[None if np.isnan(p) else round(p, 5) for p in own] for own in power.values.tolist()],
        "sparsity": said.get("sparsity"),
        "level": level,
        "asked": said.get("queries"),
        "answers": said.get("answers"),
        "found": (said.get("judged_labels") or [0])[0],
        "counted": answers.COUNTED,
        "sparsities": box.axes[0].tolist(),
        "correlations": box.axes[1].tolist(),
        "queries": power.axes[0].tolist(),
    }


def _short(frame: pl.DataFrame) -> list[list[Any]]:
    """Rows with floats of six digits."""
    return [
        [
            float(f"{cell:.6g}")
            if isinstance(cell, float)
            else plain_text(cell)
            if isinstance(cell, str)
            else cell
            for cell in row
        ]
        for row in frame.rows()
    ]


def _json(value: object) -> str:
    """JSON text in which no script element can end."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _named(pairs: pl.DataFrame) -> list[tuple[str, str, str]]:
    return pairs.select("first", "second", "label").rows()


def _curves(pairs: pl.DataFrame, frame: pl.DataFrame, axes: list[str], value: str) -> _Curves:
    """Numbers of each pair over the points of all pairs.

    Args:
        pairs: prepared pairs.
        frame: prepared frame with a row for each pair and point.
        axes: names of the columns of the points.
        value: name of the column of the number.
    """
    of = pairs.select("first", "second", "label").with_row_index("id")
    rows = of.join(frame.drop_nulls(axes), on=["first", "second", "label"], maintain_order="right")
    places = [np.round(rows[axis].to_numpy().astype(np.float64), 9) for axis in axes]
    points = [np.unique(place) for place in places]
    values = np.full((len(of), *map(len, points)), np.nan)
    at = (np.searchsorted(own, place) for own, place in zip(points, places, strict=True))
    values[(rows["id"].to_numpy(), *at)] = rows[value].cast(pl.Float64).to_numpy()
    return _Curves(points, values)


def _thinned(box: _Curves) -> tuple[_Curves, str]:
    """Maps with few enough cells for a small page, and a sentence if some were left out."""
    axes, values = list(box.axes), box.values
    while values.size > _CELLS and max(values.shape[1:]) > 2:
        axis = int(np.argmax(values.shape[1:]))
        # Starts from the middle, so that a difference of 0 stays.
        every = slice(len(axes[axis]) // 2 % 2, None, 2)
        axes[axis] = axes[axis][every]
        values = values[:, every] if axis == 0 else values[:, :, every]
    left_out = values.size < box.values.size
    return _Curves(axes, values), " Some sparsities and correlations of the audit are left out." * left_out


def _text(value: object) -> str:
    return escape(plain_text(value))


def _said(text: str) -> str:
    return f'<p class="note">{_text(text)}</p>'


def _section(name: str, heading: str, *parts: str) -> str:
    inner = "\n".join(parts)
    return f'<section aria-labelledby="{name}">\n<h2 id="{name}">{heading}</h2>\n{inner}\n</section>'


def _listed(rows: Sequence[tuple[str, str]], kind: str = "") -> str:
    """Terms with their definitions."""
    inner = "".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in rows)
    return f"<dl{f' class={kind}' if kind else ''}>{inner}</dl>" if inner else ""


def _of_metric(label: str, many: bool) -> str:
    """Name of the metric of a part, for paper, where all metrics are printed."""
    return f'<p class="note printed">{_text(label)}</p>' if many else ""


def _answers(ready: Audit, labels: list[str]) -> str:
    """Answer by each metric: a sentence, and the models as a ladder with the verdict on each step."""
    level, found = ready.assumptions.get("level") or 0.95, []
    independent = ready.assumptions.get("correlation") is None
    pairs = ready.pairs.with_row_index("id")
    for place, sentence in enumerate(answers.answers(ready)):
        steps = {(row["first"], row["second"]): row for row in pairs.filter(place=place).to_dicts()}
        rungs, before = [], None
        for model, value in ready.models.filter(place=place).select("model", "value").rows():
            row = steps.get((before, model))
            if row is not None:
                kind = answers.kind_of(row["verdict"])
                rungs.append(
                    f'<p class="link {kind}" data-link={row["id"]}><b>{kind}</b> '
                    f"<span>{_text(answers.line(row, level, independent=independent))}</span></p></li>"
                )
            elif before is not None:
                rungs.append("</li>")
            rungs.append(
                f"<li><span class=model>{_text(model)}</span> "
                f"<span class=value>{words.number_text(value)}</span>"
            )
            before = model
        ladder = "".join(rungs) + "</li>" * (before is not None)
        found.append(
            f'<div class="card" data-place={place}><p class="sentence">{_text(sentence)}</p>'
            f'<ol class="ladder" aria-label="{_text(labels[place])}, the best first">{ladder}</ol>'
            f"{_apart(ready, place)}</div>"
        )
    return "\n".join(found)


def _apart(ready: Audit, place: int) -> str:
    """Sentence on the pairs that do not hold and that the ladder does not show."""
    order = ready.models.filter(place=place)["model"].to_list()
    near, named = set(pairwise(order)), {kind: [] for kind in list(answers.COUNTED)[1:]}
    for first, second, verdict in (
        ready.pairs.filter(place=place).select("first", "second", "verdict").iter_rows()
    ):
        kind = answers.kind_of(verdict)
        if (first, second) not in near and kind in named:
            named[kind].append(f"{first} over {second}")
    parts = [
        f"{', '.join(some[:_NAMED])}{f' and {len(some) - _NAMED} more' * (len(some) > _NAMED)} ({kind})"
        for kind, some in named.items()
        if some
    ]
    return f'<p class="note apart">Models further apart: {_text("; ".join(parts))}.</p>' if parts else ""


def _steps(ready: Audit, labels: list[str]) -> str:
    found = []
    for place, label in enumerate(labels):
        items = "".join(f"<li>{_coded(step)}</li>" for step in answers.steps(ready, place))
        found.append(f"<div data-place={place}>{_of_metric(label, len(labels) > 1)}<ol>{items}</ol></div>")
    return "\n".join(found)


def _coded(text: str) -> str:
    """Text with commands between back quotes as code; a name with back quotes stays as it is."""
    return re.sub(r"`((?:owkg|--)[^`]*)`", r"<code>\1</code>", _text(text))


def _inputs(box: _Curves) -> str:
    """Inputs that change the assumptions to points of the grid."""
    shown = []
    for name, about, points in (
        ("sparsity", "Sparsity", box.axes[0]),
        ("correlation", _DIFFERENCE, box.axes[1]),
    ):
        ends = (
            f'<label>{end} <input type="range" id="{name}-{end}" min="0" max="{len(points) - 1}" value="0"> '
            f'<output id="{name}-{end}-value"></output></label>'
            for end in ("from", "to")
        )
        shown.append(f"<fieldset><legend>{about}</legend>{''.join(ends)}</fieldset>")
    return f'<form id="inputs" class="inputs"><p>{_TRY}</p>{"".join(shown)}</form>'


_DIFFERENCE = "Correlation of the second model minus that of the first"
_TRY = (
    "Try other assumptions: the answer above follows. It uses the map below, which has the missing rates at "
    "the middle of their range; the audit itself is over the whole range, and so may be more careful."
)


def _pastes(ready: Audit, labels: list[str]) -> str:
    """A sentence about each pair, and a table for each metric."""
    sentences = "".join(
        f"<div data-only={i}>{_paste(f'sentence-{i}', answers.paper(row, ready))}</div>"
        for i, row in enumerate(ready.pairs.iter_rows(named=True))
    )
    boards = "".join(
        f"<div data-place={place}>{_of_metric(label, len(labels) > 1)}"
        f"{_paste(f'latex-{place}', answers.leaderboard(ready, place))}</div>"
        for place, label in enumerate(labels)
    )
    return (
        f'<p class="note">About the pair {_FIRST} and {_SECOND}:</p>{sentences}'
        rf'<p class="note">Table for LaTeX, with <code>\usepackage{{booktabs}}</code>:</p>{boards}'
    )


def _paste(name: str, text: str) -> str:
    return (
        f'<div class="paste"><pre id="{name}" tabindex="0">{_text(text)}</pre>'
        f'<button type="button" data-copy="{name}">Copy</button></div>'
    )


def _figure(name: str, about: str, caption: str = "") -> str:
    """A place for a chart; `caption` is HTML."""
    told = f'<figcaption class="key">{caption}</figcaption>' if caption else ""
    save = "".join(
        f'<button type="button" data-save="{form}" aria-label="Save this figure as {form.upper()}">'
        f"{form.upper()}</button>"
        for form in ("svg", "png")
    )
    return (
        f'<figure>{told}<div class="chart" id="chart-{name}" role="img" data-about="{about}" '
        f'aria-label="{about}"></div><p class="save">{save}</p></figure>'
    )


def _folded(summary: str, *parts: str) -> str:
    inner = "".join(parts)
    return f"<details><summary>{summary}</summary>\n{inner}\n</details>" if inner else ""


def _framed(inner: str, caption: str, name: str = "") -> str:
    """A table that scrolls within the page, also with keys."""
    called = f' id="{name}"' if name else ""
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{_text(caption)}"><table{called}>'
        f"<caption>{_text(caption)}</caption>{inner}</table></div>"
    )


def _head(columns: Iterable[Any], names: int) -> str:
    cells = (
        f'<th scope="col"{" class=name" if i < names else ""}>{_text(column)}'
        for i, column in enumerate(columns)
    )
    return f"<thead><tr>{''.join(cells)}</thead>"


def _row(names: Sequence[Any], cells: Iterable[str], **marks: object) -> str:
    """A row; names are escaped, cells are not."""
    said = "".join(f" data-{name}={value}" for name, value in marks.items() if value is not None)
    heads = "".join(f"<th scope=row class=name>{_text(name)}" for name in names)
    return f"<tr{said}>{heads}{''.join(f'<td>{cell}' for cell in cells)}"


def _table(table: tables.ReportTable, *, sortable: bool = False) -> str:
    rows = (
        _row(row[: table.names], map(_text, row[table.names :]), place=place)
        for row, place in zip(table.rows, table.places, strict=True)
    )
    body = f"<tbody>{chr(10).join(rows)}</tbody>"
    return _framed(_head(table.columns, table.names) + body, table.caption, "table-pairs" if sortable else "")


def _map(box: _Curves, called: list[str]) -> str:
    """Maps of all pairs, of which the page shows one; an empty audit has none."""
    head = _head(["correlation, second minus first", *(f"sparsity {x:.3g}" for x in box.axes[0])], 1)
    whole = np.vectorize(_probability, otypes=[object])(box.values) if box.values.size else box.values
    bodies = []
    for i, name in enumerate(called):
        title = f'<tr><th scope="rowgroup" class=name colspan={len(box.axes[0]) + 1}>{_text(name)}'
        rows = (
            f"<tr><th scope=row>{y:.3g}<td>{'<td>'.join(cells)}"
            for y, cells in zip(box.axes[1], whole[i].T, strict=True)
        )
        bodies.append(f"<tbody data-only={i}>{title}{''.join(rows)}</tbody>")
    caption = "Probability that the first is better on the complete test; columns are sparsities"
    return _framed(head + "\n".join(bodies), caption, "table-box")


def _powers(power: _Curves, pairs: pl.DataFrame) -> str:
    """A row for each pair, with a column for as many numbers of queries as fit on paper."""
    counts = power.axes[0]
    some = np.unique(np.linspace(0, len(counts) - 1, _COUNTS).round().astype(int)) if len(counts) else []
    rows = (
        _row((label, first, second), (_probability(p, 4) for p in power.values[i][some]), place=place)
        for i, (first, second, label, place) in enumerate(
            pairs.select("first", "second", "label", "place").rows()
        )
    )
    head = _head(["metric", "first", "second", *(f"{count:,.0f} queries" for count in counts[some])], 3)
    caption = "Probability that so many queries show the wrong order"
    return _framed(head + f"<tbody>{chr(10).join(rows)}</tbody>", caption, "table-power")


def _probability(value: float, digits: int = 3) -> str:
    return NONE if np.isnan(value) else f"{value:.{digits}f}"


def _facts(ready: Audit, called: list[str]) -> str:
    """Some of the facts that reverse the order of each pair."""
    columns = [
        name for name in ("query", "side", "entity", "relation", "answer") if name in ready.facts.columns
    ]
    of = ready.pairs.select("first", "second", "label").with_row_index("id")
    facts = of.join(ready.facts, on=["first", "second", "label"], maintain_order="left_right")
    if facts.is_empty():
        return _said("No such answers were found.")
    most = int(np.clip(_FACTS // facts["id"].n_unique(), _FEWEST, _MOST))
    bodies = []
    for i, name in enumerate(called):
        own = facts.filter(id=i)
        rows = "".join(
            _row((), (_text(NONE if cell is None else cell) for cell in row))
            for row in own.head(most).select(columns).rows()
        )
        more = f"; {most:,} of {len(own):,} answers" if len(own) > most else f"; {len(own):,} answers"
        title = f'<tr><th scope="rowgroup" class=name colspan={len(columns)}>{_text(name + more)}'
        bodies.append(f"<tbody data-only={i}>{title}{rows}</tbody>")
    caption = "Answers that would reverse the order, to judge first"
    return _framed(_head(columns, len(columns)) + "\n".join(bodies), caption, "table-facts")
