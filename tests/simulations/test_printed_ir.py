"""Printed numbers of Zhou et al., Berrendorf et al. and PROBE: how many are ours, and why others are not."""

import re
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from owkg.files.lines import read_lines
from owkg.kg import read_graph
from owkg.metrics import adjusted_from, metric
from simulations.berrendorf2020.printed import candidates
from simulations.printed import VERDICTS, _value, cells_of, table_of, verdict
from simulations.zhou2022.published import S, read_study

ROOT = Path(__file__).parents[2]
VERDICTS_OF = {"zhou2022": (72, 5, 3, 19), "berrendorf2020": (17, 0, 2, 20), "probe2026": (17, 0, 1, 64)}
ERRATA = set(re.findall(r"^\| ([A-Z]\d+) \|", (ROOT / "docs/evidence/errata.md").read_text(), re.MULTILINE))
TABLES = {
    "zhou2022": {
        "000_table1_test_sets": ["triples", "positives", "negatives"],
        "000_table3_tau_by_category": ["kendall_tau"],
        "000_table4_tau_by_relation_distribution": ["kendall_tau"],
    },
    "berrendorf2020": {"002_table1_link_prediction": ["MR", "AMRI_percent"]},
    "probe2026": {
        "004_table1_datasets": None,
        "004_table2_p1_sharpness": ["score"],
        "004_table2_p2_popularity_robustness": ["score"],
    },
}


@pytest.fixture(scope="module", params=VERDICTS_OF)
def paper(request):
    return request.param


_cells = cache(cells_of)


@pytest.fixture
def cells(paper, owkg_data):
    return _cells(paper, owkg_data)


def test_verdicts(paper, cells):
    found = Counter(map(verdict, cells))
    assert tuple(found[name] for name in VERDICTS) == VERDICTS_OF[paper]
    assert len({cell.place for cell in cells}) == len(cells)
    assert {cell.note for cell in cells if verdict(cell) == "differs"} <= ERRATA


def test_the_table_of_the_docs_is_that_of_today(paper, cells):
    kept = pl.read_csv(ROOT / "docs" / "reproduction" / f"printed_{paper}.csv", infer_schema=False)
    found = table_of(cells)
    assert kept["place"].to_list() == found["place"].to_list()
    assert kept["verdict"].to_list() == found["verdict"].to_list()


def test_every_printed_number_is_there(paper, cells, owkg_data):
    in_tables = Counter(_value(cell.printed) for cell in cells if cell.place.startswith("Table"))
    wanted = Counter()
    for name, columns in TABLES[paper].items():
        table = pl.read_csv(owkg_data / "printed" / f"{name}.csv", infer_schema=False)
        for column in columns or table.columns[2:]:
            wanted.update(map(_value, table[column]))
    assert in_tables == wanted
    for path in (owkg_data / "printed").glob(f"{next(iter(TABLES[paper]))[:3]}_text_numbers.csv"):
        every = {_value(cell.printed) for cell in cells}
        for text in pl.read_csv(path, infer_schema=False)["printed"]:
            for number in re.findall(r"(?<![\d%])-?\d[\d,]*\.?\d*(?:e-\d+)?", text.removesuffix("/2")):
                assert _value(number.strip(",")) in every, text


def test_annotation_examples(owkg_data):
    """Table 2 of Zhou et al.: underlined answers are judged not relevant, and the others relevant."""
    study = read_study(owkg_data)
    texts = [line.rstrip("\n").split("\t") for line in read_lines(owkg_data / "kgc_sparsity/mid2name.txt.gz")]
    name = pl.DataFrame(texts, schema=["entity", "name"], orient="row")
    label = {"original answer": None, "plain": True, "underlined": False}
    judged = study.pool.select("head", "relation", "tail", "positive")
    known = study.triples[S].with_columns(positive=pl.lit(None, pl.Boolean))
    every = pl.concat([judged, known])
    for side in ("head", "tail"):
        every = every.join(name.rename({"entity": side, "name": f"{side}_name"}), on=side)
    labels = {
        (h, r, t): p for h, r, t, p in every.select("head_name", "relation", "tail_name", "positive").rows()
    }
    rows = pl.read_csv(owkg_data / "printed/000_table2_annotation_examples.csv")
    for query, answer, kind, face in rows.select(rows.columns[1:]).rows():
        head, relation, _ = query.strip("()").split(", ")
        (found,) = {
            p for (h, r, t), p in labels.items() if (h, t) == (head, answer) and r.startswith(relation)
        }
        assert found is label[face or kind]


@pytest.mark.parametrize("filtered", [True, False])
def test_amri_follows_from_mr_with_filtered_candidates(filtered, owkg_data):
    equal = 0
    for cell in _cells("berrendorf2020", owkg_data):
        if not (cell.place.startswith("Table 1") and cell.place.endswith("MR")):
            continue
        folder = "wn18rr" if "WN18RR" in cell.place else "fb15k237"
        own = candidates(read_graph(owkg_data / folder), filtered=filtered)
        index = 100 * adjusted_from(metric("amri"), float(_value(cell.printed)), own)
        table = pl.read_csv(owkg_data / "printed/002_table1_link_prediction.csv", infer_schema=False)
        row = table.filter(MR=cell.printed, model=cell.place.split(", ")[2])
        equal += np.round(index, 1) == float(row["AMRI_percent"].item())
    assert equal == (12 if filtered else 6)
