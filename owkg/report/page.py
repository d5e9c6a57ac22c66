"""The report as one page of HTML, which asks the network for nothing."""

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from owkg.auditing.result import VERDICTS, Audit
from owkg.files.storage import address_limit
from owkg.report import tables, words
from owkg.report.charts import charts
from owkg.report.words import NONE
from owkg.terminal.tables import plain_text

# Cells of all maps; of more, every other sparsity or correlation is left out.
_CELLS = 100_000
# Facts to judge that the page lists, in all, and of one pair at least and at most.
_FACTS, _FEWEST, _MOST = 1000, 3, 20
# Pairs of a metric whose sentences are shown unasked.
_OPEN = 15

# Only what owkg itself wrote into the page runs. Vega reads its expressions with an interpreter (`ast` in
# page.js), so nothing is evaluated either.
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


def html(audit: Audit, *, title: str = "Audit") -> str:
    """A page with the verdicts, charts and tables of an audit, each beside what it rests on.

    It is one file of about 1 MB and needs no network. Of 12 models and 5 metrics, 330 pairs, it has 2 MB.

    Args:
        audit: to report.
        title: of the page.

    Returns:
        HTML; names and title are escaped.

    Raises:
        ValueError: if Altair is not installed.
    """
    ready = words.prepared(audit)
    specs, script = charts(ready.models["model"].n_unique()), _bundle()
    rests, labels = words.rests(ready), words.labels(ready)
    box, left_out = _thinned(
        _curves(ready.pairs, ready.box, ["sparsity", "correlation_difference"], "probability")
    )
    power = _curves(ready.pairs, ready.power, ["queries"], "wrong_order")
    called = [f"{first} – {second}, {label}" for first, second, label in _named(ready.pairs)]
    numbers = _numbers(ready, labels, box, power) | {"charts": specs}
    sections = [
        _section("verdicts", "Verdicts", rests["verdicts"], _verdicts(ready)),
        _section(
            "models",
            "Leaderboard",
            rests["models"],
            _figure("models", "Values of the models with intervals", _KINDS),
            _folded("Numbers of this figure", _table(tables.models_table(ready))),
        ),
        _section(
            "grid",
            "What the full test would read",
            rests["grid"],
            _figure("grid", "Full-test metric implied at each sparsity", _KEY + _SEEN),
            _folded("Numbers of this figure", _table(tables.grid_table(ready))),
        ),
        _section(
            "box",
            "Which model is better, by sparsity and correlation",
            rests["box"],
            _figure("box", "Map of the probability that the first is better", _MAP_NOTE + left_out),
            _folded("Numbers of this figure", _map(box, called)),
        ),
        _section(
            "breakdown",
            "How many missing answers turn an order",
            rests["breakdown"],
            _said(_BREAKDOWN),
            _table(tables.breakdown_table(ready)),
            _folded("Answers to judge first, of the pair", _said(rests["facts"]), _facts(ready, called)),
        ),
        _section(
            "power",
            "How many queries tell two models apart",
            rests["power"],
            _figure(
                "power",
                "Probability of the wrong order by number of queries",
                f"{_FIRST} against {_SECOND}, {_METRIC}.",
            ),
            _folded("Numbers of this figure", _powers(power, ready.pairs)),
            _folded(
                "Which metric: by metric and by best weight",
                _said(_WEIGHTS),
                _table(tables.weights_table(ready)),
            ),
        ),
        _section(
            "pairs",
            "All pairs",
            rests["pairs"],
            _folded("Table of all pairs", _table(tables.pairs_table(ready))),
        ),
        *(
            [
                _section(
                    "judged",
                    "What judgements say",
                    rests["judged"],
                    _folded("By model, side and category", _table(tables.judged_table(ready))),
                )
            ]
            * (len(ready.judged) > 0)
        ),
        *(
            [_section("plans", "If you judge more", rests["plans"], _table(tables.plans_table(ready)))]
            * (len(ready.plans) > 0)
        ),
        _section("protocol", "Protocol", "", _protocol(ready)),
    ]
    counted = (
        ("model", ready.models["model"].n_unique()),
        ("metric", len(labels)),
        ("pair", len(ready.pairs)),
    )
    head = ", ".join(f"{count:,} {name}{'s' * (count != 1)}" for name, count in counted)
    here = Path(__file__)
    style = f"\n{here.with_suffix('.css').read_text(encoding='utf-8')}"
    own = f"\n{here.with_suffix('.js').read_text(encoding='utf-8')}"
    bundle = script.replace("</script", r"<\/script").replace("<!--", r"<\!--")
    bundle = bundle.replace("\r\n", "\n").replace("\r", "\n")  # as HTML is read
    return _PAGE.format(
        policy=_POLICY.format(scripts=f"{_hashed(bundle)} {_hashed(own)}", styles=_hashed(style)),
        title=_text(title),
        style=style,
        head=head,
        sections="\n".join(sections),
        numbers=_json(numbers),
        bundle=bundle,
        script=own,
    )


def _hashed(text: str) -> str:
    """What a policy calls a script or a style sheet of this text."""
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
<header>
<h1>{title}</h1>
<p class="note">{head}</p>
</header>
<div class="bar"><form>
<label>Metric <select id="metric"></select></label>
<label class="wide">Pair <select id="pair"></select></label>
<button type="button" id="theme" aria-label="Change between light and dark">Dark</button>
</form></div>
<main>
<noscript><p>Charts need JavaScript. The tables hold the same numbers.</p></noscript>
{sections}
</main>
<footer>Made by owkg. This page needs no network.</footer>
<script type="application/json" id="numbers">{numbers}</script>
<script>{bundle}</script>
<script>{script}</script>
</body>
</html>
"""

_FIRST, _SECOND, _METRIC = (f'<b data-name="{name}"></b>' for name in ("first", "second", "metric"))
_KINDS = (
    '<span><i class="first"></i>circles: on the known answers</span>'
    '<span><i class="second"></i>diamonds: full test, implied where a sparsity is stated</span>'
)
_KEY = f'<span><i class="first"></i>{_FIRST}</span><span><i class="second dashed"></i>{_SECOND}</span>'
_SEEN = "<span><i></i>other models</span> Dotted: the value on the known answers. Bands: intervals."
_MAP_NOTE = (
    f"{_METRIC}. Blue: {_FIRST} is better. Orange: {_SECOND}. "
    "Where nothing is drawn, no such correlation is feasible."
)
_WEIGHTS = (
    "Queries like these, for the wrong order to show with a probability of .05. The focus is the share of a "
    "weight on the first rank. The best weight is fitted to these queries; the last column scores each half "
    "of them by the weight of the other."
)
_BREAKDOWN = (
    "Certified: no labelling with fewer missing answers turns the order. Demonstrated: one that does. "
    "A missing triple may be two of them, an answer to its head query and one to its tail query. "
    "Share: of the certified answers among them and the known answers, those that judging found with them."
)


# Bytes of addresses that the engine of JavaScript in vl-convert asks for; with fewer it ends the process.
_ADDRESSES = 100 * 10**9


def require_html() -> None:
    """Raises ValueError if no HTML report can be made here, so that long work does not end in an error."""
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
    """Vega, Vega-Lite and Vega-Embed as one script; once for all charts."""
    require_html()
    import altair as alt
    from vl_convert import javascript_bundle

    version = ".".join(alt.VEGALITE_VERSION.split(".")[:2])
    return javascript_bundle(vl_version=version)  # pyright: ignore[reportCallIssue]: not as it is declared


def _numbers(ready: Audit, labels: list[str], box: _Curves, power: _Curves) -> dict[str, Any]:
    """What the charts draw. The numbers of pairs are in tables, where they are only once."""
    said = ready.assumptions
    values = ready.models.select(
        "place", "model", "value", "ci_low", "ci_high", "full", "full_low", "full_high"
    )
    grid = ready.grid.select("place", "model", "sparsity", "full", "full_low", "full_high")
    pairs = ready.pairs.with_row_index("id").select("id", "place", "first", "second", "required_queries")
    return {
        "labels": [plain_text(label) for label in labels],
        "models": _short(values),
        "grid": _short(grid),
        "pairs": [
            {
                "id": i,
                "place": place,
                "first": plain_text(first),
                "second": plain_text(second),
                "required": required,
                "stated": words.limits(said, first, second),
            }
            for i, place, first, second, required in pairs.rows()
        ],
        "sparsity": said.get("sparsity"),
        "asked": said.get("queries"),
        "sparsities": box.axes[0].tolist(),
        "correlations": box.axes[1].tolist(),
        "queries": power.axes[0].tolist(),
    }


def _short(frame: pl.DataFrame) -> list[list[Any]]:
    """Rows, floats with six digits."""
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
    """JSON that no script element ends at."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _named(pairs: pl.DataFrame) -> list[tuple[str, str, str]]:
    return pairs.select("first", "second", "label").rows()


def _curves(pairs: pl.DataFrame, frame: pl.DataFrame, axes: list[str], value: str) -> _Curves:
    """The numbers of each pair over the points of all pairs.

    Args:
        pairs: prepared.
        frame: prepared; rows of pairs and points.
        axes: columns of the points.
        value: column of the number.
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
    """Maps of so few cells that the page stays small, and what is to be said of it."""
    axes, values = list(box.axes), box.values
    while values.size > _CELLS and max(values.shape[1:]) > 2:
        axis = int(np.argmax(values.shape[1:]))
        # From the middle: a difference of 0 stays.
        every = slice(len(axes[axis]) // 2 % 2, None, 2)
        axes[axis] = axes[axis][every]
        values = values[:, every] if axis == 0 else values[:, :, every]
    left_out = values.size < box.values.size
    return _Curves(axes, values), " Some sparsities and correlations of the audit are left out." * left_out


def _text(value: object) -> str:
    return escape(plain_text(value))


def _said(text: str) -> str:
    return f'<p class="note">{_text(text)}</p>'


def _section(name: str, heading: str, rests: str, *parts: str) -> str:
    about = f'<p class="rests">{_text(rests)}</p>' if rests else ""
    inner = "\n".join(parts)
    return f'<section aria-labelledby="{name}">\n<h2 id="{name}">{heading}</h2>\n{about}\n{inner}\n</section>'


def _figure(name: str, about: str, caption: str = "") -> str:
    """A place for a chart; what `caption` holds is HTML."""
    told = f'<figcaption class="key">{caption}</figcaption>' if caption else ""
    return (
        f'<figure>{told}<div class="chart" id="chart-{name}" role="img" data-about="{about}" '
        f'aria-label="{about}"></div></figure>'
    )


def _folded(summary: str, *parts: str) -> str:
    return f"<details><summary>{summary}</summary>\n{''.join(parts)}\n</details>"


def _framed(inner: str, caption: str, name: str = "") -> str:
    """A table that scrolls within the page, also by keys."""
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
    """A row; cells are not escaped, names are."""
    said = "".join(f" data-{name}={value}" for name, value in marks.items() if value is not None)
    heads = "".join(f"<th scope=row class=name>{_text(name)}" for name in names)
    return f"<tr{said}>{heads}{''.join(f'<td>{cell}' for cell in cells)}"


def _table(table: tables.ReportTable) -> str:
    rows = (
        _row(row[: table.names], map(_text, row[table.names :]), place=place)
        for row, place in zip(table.rows, table.places, strict=True)
    )
    body = f"<tbody>{chr(10).join(rows)}</tbody>"
    return _framed(_head(table.columns, table.names) + body, table.caption)


def _verdicts(ready: Audit) -> str:
    """The count of each verdict, and of each pair a sentence and what it rests on."""
    counted = tables.verdicts_table(ready)
    rows = "\n".join(_row(row[:1], row[1:]) for row in counted.rows)
    count = _framed(f"{_head(counted.columns, 1)}<tbody>{rows}</tbody>", counted.caption)
    values = {
        (model, label): value for model, label, value in ready.models.select("model", "label", "value").rows()
    }
    kinds = {verdict: f"v{i}" for i, verdict in enumerate(VERDICTS)}
    items = "\n".join(
        f'<li data-place={row["place"]} class="{kinds.get(row["verdict"], "")}">'
        f"<strong>{_text(row['first'])} over {_text(row['second'])}: {_text(words.verdict(row))}</strong>"
        f"{_text(words.sentence(row, values))} "
        f'<span class="rests">{_text(words.pair_rests(row, ready.assumptions))}</span></li>'
        for row in ready.pairs.iter_rows(named=True)
    )
    few = ready.pairs.group_by("place").len()["len"].max() or 0
    shown = " open" if isinstance(few, int) and few <= _OPEN else ""
    sentences = (
        f"<details{shown}><summary>Each pair in a sentence</summary><ul class=verdicts>{items}</ul></details>"
    )
    notes = "".join(f'<p class="note">{_text(note)}</p>' for note in ready.assumptions.get("notes") or ())
    return count + sentences + notes


def _map(box: _Curves, called: list[str]) -> str:
    """The map of every pair; the page shows one. An empty audit has none."""
    head = _head(["correlation, second less first", *(f"sparsity {x:.3g}" for x in box.axes[0])], 1)
    whole = np.vectorize(_probability, otypes=[object])(box.values) if box.values.size else box.values
    bodies = []
    for i, name in enumerate(called):
        title = f'<tr><th scope="rowgroup" class=name colspan={len(box.axes[0]) + 1}>{_text(name)}'
        rows = (
            f"<tr><th scope=row>{y:.3g}<td>{'<td>'.join(cells)}"
            for y, cells in zip(box.axes[1], whole[i].T, strict=True)
        )
        bodies.append(f"<tbody data-only={i}>{title}{''.join(rows)}</tbody>")
    caption = "Probability that the first is better on the full test; columns are sparsities"
    return _framed(head + "\n".join(bodies), caption, "table-box")


def _powers(power: _Curves, pairs: pl.DataFrame) -> str:
    """A row for each pair, a column for each number of queries."""
    rows = (
        _row((label, first, second), (_probability(p, 4) for p in power.values[i]), place=place, pair=i)
        for i, (first, second, label, place) in enumerate(
            pairs.select("first", "second", "label", "place").rows()
        )
    )
    head = _head(["metric", "first", "second", *(f"{count:,.0f} queries" for count in power.axes[0])], 3)
    caption = "Probability that so many queries show the wrong order"
    return _framed(head + f"<tbody>{chr(10).join(rows)}</tbody>", caption, "table-power")


def _probability(value: float, digits: int = 3) -> str:
    return NONE if np.isnan(value) else f"{value:.{digits}f}"


def _facts(ready: Audit, called: list[str]) -> str:
    """Some of the facts that turn the order of each pair."""
    columns = [
        name for name in ("query", "side", "entity", "relation", "answer") if name in ready.facts.columns
    ]
    of = ready.pairs.select("first", "second", "label").with_row_index("id")
    facts = of.join(ready.facts, on=["first", "second", "label"], maintain_order="left_right")
    if facts.is_empty():
        return _said("None is at hand.")
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
    caption = "Facts that, were they true, turn the order"
    return _framed(_head(columns, len(columns)) + "\n".join(bodies), caption, "table-facts")


def _protocol(ready: Audit) -> str:
    rows = "".join(
        f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in words.protocol(ready.assumptions)
    )
    return f"<dl>{rows}</dl>"
