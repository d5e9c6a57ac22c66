"""Tables of ranks as people have them: other columns, wide tables, half ranks, arrays, frames of Python."""

import re

import numpy as np
import polars as pl
import pytest

import owkg
from owkg.kg import KnowledgeGraph
from owkg.ranks import RankDataset, RankTable, convert, read_ranks, validated
from owkg.ranks.reading import TableReading

ROWS = {
    "head": ["a", "b"],
    "relation": ["r", "r"],
    "tail": ["b", "c"],
    "side": ["tail", "head"],
    "optimistic": [1, 2],
    "pessimistic": [1, 3],
    "candidates": [9, 9],
}
TABLE = pl.DataFrame(ROWS)
HEADER = ",".join(ROWS)
OWN = {"head": "subject", "tail": "object", "optimistic": "my rank", "side": "predicted=?"}
RENAMED = TABLE.rename(OWN)
WIDE = pl.DataFrame(
    {"head": ["a", "b"], "relation": "r", "tail": ["b", "c"], "head_rank": [2, 3], "tail_rank": [1, 9]}
)
GRAPH = KnowledgeGraph(
    ("a", "b", "c", "d"),
    ("r", "s"),
    {
        "train": np.array([(0, 0, 1), (3, 1, 0)], np.int32),
        "valid": np.array([(1, 0, 2)], np.int32),
        "test": np.array([(0, 0, 2), (0, 1, 2)], np.int32),
    },
)


def _written(table, path):
    path.parent.mkdir(exist_ok=True, parents=True)
    if path.suffix == ".parquet":
        table.write_parquet(path)
    else:
        table.write_csv(path, separator="\t" if path.suffix == ".tsv" else ",")
    return path


@pytest.mark.parametrize("name", ["r.csv", "r.tsv", "r.parquet", "folder/0.parquet"])
def test_columns_have_the_names_that_are_given(tmp_path, name):
    path = _written(RENAMED.with_columns(extra=pl.lit("x")), tmp_path / name)
    path = path.parent if "/" in name else path
    for read in (read_ranks(path, columns=OWN).frame, convert(path, columns=OWN).table):
        assert read.select(TABLE.columns).equals(TABLE)
        assert read["extra"].to_list() == ["x", "x"]
    assert owkg.evaluate(path, "mrr", columns=OWN)["value"].item() == pytest.approx((1 + 1 / 2.5) / 2)
    found = owkg.compare([path, _written(RENAMED, tmp_path / "other.csv")], "mrr", columns=OWN, test="t")
    assert found.pairs["difference"].to_list() == [0.0]


def test_names_change_places(tmp_path):
    path = _written(TABLE, tmp_path / "r.csv")
    read = read_ranks(path, columns={"head": "tail", "tail": "head"}).frame
    assert read.select("head", "tail").rows() == [("b", "a"), ("c", "b")]


@pytest.mark.parametrize("name", ["r.csv", "folder/0.parquet", "frame"])
def test_a_table_with_the_names_of_owkg_needs_no_others(tmp_path, name):
    path = TABLE if name == "frame" else _written(TABLE, tmp_path / name)
    path = path.parent if "/" in name else path
    with pytest.warns(UserWarning, match="has no column 'subject' for head; owkg uses the columns"):
        read = read_ranks(path, columns={"head": "subject"}).frame
    assert read.select(TABLE.columns).equals(read_ranks(path).frame.select(TABLE.columns))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"head": "nope"}, "`columns` names 'nope'; columns found: 'subject', "),
        ({"who": "subject"}, "`columns` must give columns to head, relation, .*, got 'who'"),
        ({"head": "subject", "tail": "subject"}, "`columns` must give each column one name, got two"),
        ({"relation": "subject"}, "gives the name relation to 'subject', and the table has"),
        (["head=subject"], "`columns` must be a mapping"),
        ({"head": 3}, "`columns` must be a mapping"),
    ],
)
@pytest.mark.parametrize("name", ["r.csv", "folder/0.parquet", "frame"])
def test_other_names_are_refused(tmp_path, name, columns, message):
    path = RENAMED if name == "frame" else _written(RENAMED, tmp_path / name)
    path = path.parent if "/" in name else path
    with pytest.raises(ValueError, match=message):
        read_ranks(path, columns=columns)


@pytest.mark.parametrize(
    ("change", "values"),
    [
        (
            lambda text: "".join(f",{line}\n" if i == 0 else f"{i},{line}\n" for i, line in enumerate(text)),
            False,
        ),
        (
            lambda text: "".join(
                f",,{line}\n" if i == 0 else f"{i},x,{line}\n" for i, line in enumerate(text)
            ),
            False,
        ),
        (lambda text: "\n".join(line.replace(",", ", ") for line in text), False),
        (lambda text: "\n".join(line.replace(",", ";") for line in text), False),
        (lambda text: "\n".join(line.replace(",", "\t") for line in text), False),
        (lambda text: "\ufeff" + "\r\n".join(text), False),
        (lambda text: "\n".join('"' + line.replace(",", '";"') + '"' for line in text), False),
        (lambda text: "\n".join([text[0].title(), *text[1:]]), True),
        (lambda text: "\n".join([text[0].replace("head,relation,tail", "h,r,t"), *text[1:]]), True),
        (lambda text: "\n".join([text[0].replace("side", "Side "), *text[1:]]), True),
        (
            lambda text: "\n".join(
                line.replace(",tail,", ",T,").replace(",head,", ", Head ,") for line in text
            ),
            None,
        ),
        (
            lambda text: "\n".join([text[0], *(re.sub(r",(\d),", r", \1 ,", line) for line in text[1:])]),
            False,
        ),
    ],
    ids=[
        "index",
        "two-levels",
        "spaces",
        "semicolons",
        "tabs",
        "windows",
        "quoted",
        "title",
        "hrt",
        "S",
        "T",
        "pad",
    ],
)
def test_csv_files_as_people_write_them(tmp_path, change, values, recwarn):
    path = tmp_path / "r.csv"
    text = TABLE.write_csv().splitlines()
    if values is None:  # the header stays
        changed = change(text[1:])
        path.write_text(text[0] + "\n" + changed + "\n")
    else:
        path.write_bytes(change(text).encode())
    assert read_ranks(path).frame.equals(TABLE)
    assert bool([w for w in recwarn if "another spelling" in str(w.message)]) is bool(values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty|no column"),
        (f"{HEADER}\n", "no rows"),
        (f"{HEADER}\na,r,b,tail,1!5,2,9\n".replace(",", ";").replace("!", ","), "line 2: .* '1,5'"),
        (f"{HEADER},score\na,r,b,tail,1,2,9,0!5\n".replace(",", ";").replace("!", ","),
         "line 2: score must be a number with a decimal point, got '0,5'"),
        ("a,,b\n1,2,3\n", "line 1: each column needs a name of its own"),
        (f"{HEADER}\na,r,b,lhs,1,2,9\n", "side must be .* got 'lhs'"),
    ],
)  # fmt: skip
def test_csv_files_that_cannot_be_read(tmp_path, text, message):
    (tmp_path / "r.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_ranks(tmp_path / "r.csv")


def test_the_index_of_pandas_in_parquet_is_left_out(tmp_path):
    for number, kind in enumerate((pl.Int64, pl.String)):
        index = TABLE[[number]].with_columns(pl.lit("0").cast(kind).alias("__index_level_0__"))
        _written(index, tmp_path / "f" / f"{number}.parquet")
    assert read_ranks(tmp_path / "f").frame.equals(TABLE)
    assert read_ranks(tmp_path / "f" / "0.parquet").frame.equals(TABLE[:1])


@pytest.mark.parametrize("name", ["w.csv", "w.parquet", "f/0.parquet", "frame"])
def test_a_row_for_both_sides(tmp_path, name):
    own = WIDE.rename({"head_rank": "sub", "tail_rank": "obj"})
    path = own if name == "frame" else _written(own, tmp_path / name)
    path = path.parent if "/" in name else path
    columns = {"head_rank": "sub", "tail_rank": "obj"}
    read = read_ranks(path, columns=columns, untied=True, candidates=9).frame
    assert read.select("head", "side", "optimistic", "pessimistic").rows() == [
        ("a", "head", 2, 2), ("b", "head", 3, 3), ("a", "tail", 1, 1), ("b", "tail", 9, 9),
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"ranks do not state their ties: `untied`"):
        read_ranks(path, columns=columns, candidates=9)
    with pytest.raises(ValueError, match=r"(line 3|row 2): tail_rank must be at most .*, got 9"):
        read_ranks(path, columns=columns, candidates=8, untied=True)
    one = read_ranks(path, columns={"tail_rank": "obj"}, untied=True, candidates=9).frame
    assert one["side"].to_list() == ["tail", "tail"]


def test_wide_tables_of_both_ranks():
    both = WIDE.rename({"head_rank": "head_optimistic", "tail_rank": "tail_optimistic"})
    both = both.with_columns(head_pessimistic=4, tail_pessimistic=9, head_candidates=9, tail_candidates=12)
    read = read_ranks(both).frame
    assert read["pessimistic"].to_list() == [4, 4, 9, 9]
    assert read["candidates"].to_list() == [9, 9, 12, 12]
    with pytest.raises(ValueError, match="must have head_candidates and tail_candidates, got one of them"):
        read_ranks(both.drop("tail_candidates"))


HALVES = TABLE.drop("optimistic", "pessimistic").with_columns(rank=pl.Series([1.0, 2.5]))


@pytest.mark.parametrize("name", ["h.csv", "h.parquet", "f/0.parquet"])
def test_half_ranks_have_realistic_metrics_alone(tmp_path, name):
    path = _written(HALVES, tmp_path / name)
    path = path.parent if "/" in name else path
    with pytest.raises(ValueError, match=r"(line 3|row 2): rank must be a whole .* half ranks are means"):
        read_ranks(path, untied=True)
    read = read_ranks(path, realistic=True)
    assert read.averaged
    assert owkg.evaluate(read, ["mrr", "mr", "hits@2"])["value"].to_list() == [0.7, 1.75, 0.5]
    with pytest.warns(UserWarning, match="only realistic ranks are known"):
        assert owkg.evaluate(path, "mrr", by="ties", realistic=True)["ties"].to_list() == ["realistic"]
    with pytest.raises(ValueError, match=r"`ties` must be realistic .* got exact"):
        owkg.evaluate(read, "mrr", ties="exact")
    with pytest.raises(ValueError, match="`ties` must be realistic, because only realistic ranks of 'a'"):
        owkg.compare({"a": read, "b": TABLE}, "mrr", ties="pessimistic")
    read.write(tmp_path / "again.csv")
    assert read_ranks(tmp_path / "again.csv").averaged


@pytest.mark.parametrize("rank", [0.5, 2.25, float("nan"), -1.0, float("inf")])
def test_what_no_realistic_rank_is(rank):
    with pytest.raises(ValueError, match=r"row 1: rank must be whole or half, from 1 to 2\^52, such as 2\.5"):
        read_ranks(HALVES.with_columns(rank=pl.lit(rank)), realistic=True)


def test_said_twice():
    with pytest.raises(ValueError, match="`realistic` must be left out with `untied`"):
        TableReading(untied=True, realistic=True)
    with pytest.raises(ValueError, match="`untied` must be"):
        read_ranks(HALVES, untied="no")
    with pytest.raises(ValueError, match="`candidates` must be an option or the column"):
        read_ranks(HALVES, realistic=True, candidates=9)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_arrays_and_lists_of_ranks():
    assert owkg.evaluate([1, 4, 2.5], "mrr", candidates=9)["value"].item() == pytest.approx(0.55)
    ranks = np.array([[2, 1], [3, 9]])
    found = owkg.evaluate(ranks, "mr", candidates=np.array([[9, 9], [3, 9]]), untied=True, by="side")
    assert found.filter(side="head")["value"].item() == 2.5
    read = (
        read_ranks(ranks, untied=True, graph=GRAPH, columns={"head_rank": "1", "tail_rank": "0"}).frame
        if ranks.max() < 4
        else read_ranks(np.array([[1, 2], [1, 4]]), untied=True, graph=GRAPH).frame
    )
    assert read.select("head", "relation", "tail", "side", "candidates").rows() == [
        ("a", "r", "c", "head", 3), ("a", "s", "c", "head", 4),
        ("a", "r", "c", "tail", 3), ("a", "s", "c", "tail", 4),
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("ranks", "options", "message"),
    [
        ([1, 2], {}, "no column candidates; give their number in `candidates`"),
        ([[1, 2, 3]], {"candidates": 9}, r"`ranks` must be ranks, numbers of shape \[n\], .* shape \(1, 3\)"),
        ([], {"candidates": 9}, "`ranks` must be ranks"),
        (["a", "b"], {"candidates": 9}, "`ranks` must be ranks"),
        ([[1], [1, 2]], {"candidates": 9}, "`ranks` must be"),
        ([1, 2], {"candidates": [9, 9, 9]}, "`candidates` must be one number, or one for each of 2 rows"),
        ([1, 2], {"candidates": 0}, "`candidates` must be a whole number of at least 1"),
        ([1, float("nan")], {"candidates": 9}, "row 2: rank must be whole or half"),
        ([1, 2], {"graph": GRAPH}, "`columns` must give the side"),
        ([[1, 2]], {"graph": GRAPH}, "has 1 rows without triples, and the split test has 2 triples"),
        (3, {"candidates": 9}, "must be a table of owkg.read_ranks or owkg.rank, a DataFrame, .* got int"),
        ([[1, 2]], {"candidates": 9, "columns": {"rank": "2"}}, "names '2'; columns found: '0', '1'"),
        ([TABLE, TABLE], {}, r"`ranks` must have names if there are several tables: \{name: table, ...\}"),
    ],
)
def test_bad_arrays(ranks, options, message):
    with pytest.raises(ValueError, match=message):
        owkg.evaluate(ranks, "mrr", **options)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_ranks_alone_are_realistic(tmp_path):
    np.save(tmp_path / "r.npy", [1.0, 4.0, 2.5])
    for given in ([1, 4, 2.5], np.array([1, 4, 2.5]), tmp_path / "r.npy"):
        with pytest.warns(UserWarning, match="ranks are taken as realistic"):
            assert read_ranks(given, candidates=9).averaged
        assert owkg.evaluate(given, "mrr", candidates=9)["value"].item() == pytest.approx(0.55)
    assert not read_ranks([1, 4], candidates=9, untied=True).averaged


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_other_column_of_an_array_is_left_out():
    read = read_ranks([[1, 2], [1, 4]], untied=True, graph=GRAPH, columns={"tail_rank": "0"}).frame
    assert read["optimistic"].to_list() == [1, 1]
    assert not {"0", "1"} & set(read.columns)


@pytest.mark.filterwarnings("ignore:.* row i is taken")
def test_arrays_in_files(tmp_path):
    path = tmp_path / "r.npy"
    np.save(path, np.array([[1, 2], [1, 4]]))
    with pytest.warns(UserWarning, match="column 0 is taken as the ranks of heads"):
        table = convert(path, graph=GRAPH, untied=True, split="test").table
    assert table["optimistic"].to_list() == [1, 1, 2, 4]
    turned = read_ranks(path, graph=GRAPH, untied=True, columns={"head_rank": "1", "tail_rank": "0"}).frame
    assert turned["optimistic"].to_list() == [2, 4, 1, 1]
    np.save(path, np.array([1, 2, 3]))
    with pytest.warns(UserWarning, match="each rank counts as a separate query for a tail"):
        assert read_ranks(path, untied=True, candidates=5).frame["head"].to_list() == [0, 1, 2]


@pytest.mark.parametrize("bad", ["objects", "cut", "empty", "text", "header", "cube", "words"])
def test_bad_arrays_in_files(tmp_path, bad):
    path = tmp_path / "r.npy"
    array = {"objects": np.array([{"a": 1}], object), "cube": np.ones((2, 2, 2)), "words": np.array(["a"])}
    np.save(path, array.get(bad, np.arange(1, 1000)), allow_pickle=True)
    data = path.read_bytes()
    made = {
        "cut": data[:-50],
        "empty": b"",
        "text": b"rank\n1\n",
        "header": data.replace(b"(999,)", b"(9999999999,)"),
    }
    path.write_bytes(made.get(bad, data))
    with pytest.raises(ValueError, match=r"r\.npy: (not a \.npy file of numbers|must be ranks)"):
        read_ranks(path, untied=True, candidates=1000)


def test_ids_are_those_of_the_graph_only_where_it_is_said(tmp_path):
    ids = TABLE.with_columns(head=pl.Series([0, 0]), relation=pl.Series([0, 1]), tail=pl.Series([2, 2]))
    path = _written(ids, tmp_path / "ids.csv")
    for source in (ids, path, _written(ids, tmp_path / "f" / "0.parquet").parent):
        read = read_ranks(source, graph=GRAPH, ids=True).frame
        assert read.select("head", "relation", "tail").rows() == [("a", "r", "c"), ("a", "s", "c")]
    with pytest.raises(ValueError, match=r"line 2: the graph has no entity '0'.* `ids`"):
        read_ranks(path, graph=GRAPH)
    with pytest.warns(UserWarning, match="whole numbers are taken as ids of the graph; `ids`"):
        read_ranks(ids, graph=GRAPH)
    with pytest.raises(ValueError, match="`ids` needs a graph"):
        read_ranks(path, ids=True)
    with pytest.raises(ValueError, match="row 1: head must be an id of the graph, 0 to 3, got 4"):
        read_ranks(ids.with_columns(head=pl.lit(4)), graph=GRAPH, ids=True)


def test_numbers_that_are_labels_and_no_ids():
    numbers = GRAPH._replace(entities=("7", "5", "3", "0"))
    rows = TABLE.with_columns(head=pl.lit(7), relation=pl.lit("r"), tail=pl.lit(3))
    with pytest.warns(UserWarning, match="whole numbers are taken as labels of the graph; `ids`"):
        assert read_ranks(rows, graph=numbers).frame["popularity"].to_list() == [0, 2]


@pytest.mark.parametrize("form", ["mapping", "arrays", "rows", "lazy", "pandas", "pandas-types"])
def test_tables_of_python(form):
    pandas = pytest.importorskip("pandas") if form.startswith("pandas") else None
    given = {
        "mapping": lambda: ROWS,
        "arrays": lambda: {name: np.array(column) for name, column in ROWS.items()},
        "rows": lambda: TABLE.to_dicts(),
        "lazy": lambda: TABLE.lazy(),
        "pandas": lambda: pandas.DataFrame(ROWS, index=["x", "y"]),
        "pandas-types": lambda: pandas.DataFrame(ROWS).astype(
            {"head": "category", "relation": "string", "optimistic": "Int64", "candidates": "float32"}
        ),
    }[form]()
    assert validated(given).equals(TABLE)
    assert RankTable(given).frame.equals(TABLE)
    assert read_ranks(given).frame.equals(TABLE)
    assert owkg.evaluate(given, "mrr")["value"].item() == 0.7
    assert owkg.compare({"a": given, "b": TABLE}, "mrr", test="t").pairs["difference"].item() == 0
    assert len(owkg.audit({"a": given, "b": TABLE}, "mrr").pairs) == 1


@pytest.mark.parametrize("levels", [["weight"], ["head", "relation", "tail"]])
def test_levels_of_an_index_that_have_names_are_columns(levels):
    pandas = pytest.importorskip("pandas")
    rows = TABLE.with_columns(weight=pl.Series([1.0, 3.0]))
    frame = pandas.DataFrame(rows.to_dict(as_series=False)).set_index(levels)
    assert validated(frame).select(rows.columns).equals(rows)
    assert owkg.evaluate(frame, "mrr")["value"].item() == owkg.evaluate(rows, "mrr")["value"].item()
    frame["weight"] = 1.0
    if levels == ["weight"]:
        with pytest.raises(ValueError, match="levels of the index, of different names"):
            validated(frame)


@pytest.mark.parametrize(
    ("systems", "message"),
    [
        ([TABLE, TABLE], r"`systems` must have names if they are tables without a column model"),
        (TABLE, "`systems` must be several"),
        ({"a": TABLE, "b": 3}, "`systems` must be rank tables, paths or dictionaries, got 3"),
        ({"a": TABLE, "b": {"head": [1, 2], "tail": [1]}}, "`systems` must be columns of one length"),
        ({"a": TABLE, "b": TABLE.drop("side")}, "`systems` must hold rank tables: b: no column side"),
    ],
)
def test_systems_that_are_no_tables(systems, message):
    with pytest.raises(ValueError, match=message):
        owkg.compare(systems, "mrr")


def test_frames_with_a_column_model_need_no_names():
    found = owkg.compare([TABLE.with_columns(model=pl.lit(name)) for name in "ab"], "mrr", test="t")
    assert found.pairs.select("first", "second").rows() == [("a", "b")]


def test_a_graph_beside_a_frame():
    rows = pl.DataFrame({"head": ["a"], "relation": ["r"], "tail": ["c"], "side": ["tail"], "rank": [2]})
    several = pl.concat([rows, rows.with_columns(relation=pl.lit("s"))])
    several = pl.concat([rows, rows.with_columns(relation=pl.lit("s"))])
    both = {name: several.with_columns(rank=rank) for name, rank in (("a", 1), ("b", 2))}
    values = owkg.compare(both, "mr", graph=GRAPH, untied=True, test="t").values
    assert values["value"].to_list() == [1.0, 2.0]


def test_folders_of_tables_without_candidates(tmp_path):
    rows = pl.DataFrame({"head": ["a"], "relation": ["r"], "tail": ["c"], "side": ["tail"], "rank": [2]})
    _written(rows, tmp_path / "f" / "0.parquet")
    for path in (tmp_path / "f", tmp_path / "f" / "*.parquet"):
        assert read_ranks(path, graph=GRAPH, untied=True).frame["candidates"].to_list() == [3]
        assert owkg.evaluate(path, "mr", graph=GRAPH, untied=True)["value"].item() == 2
    with pytest.raises(ValueError, match="no column candidates"):
        RankDataset.of(tmp_path / "f", TableReading(untied=True))


def test_other_tables_in_a_folder_are_told(tmp_path):
    _written(TABLE, tmp_path / "f" / "0.parquet")
    _written(TABLE, tmp_path / "f" / "more.csv")
    with pytest.warns(UserWarning, match=r"1 tables that are not Parquet files .* such as more\.csv"):
        assert len(read_ranks(tmp_path / "f")) == 2
    (tmp_path / "f" / "0.parquet").unlink()
    with pytest.raises(ValueError, match=r"got none .*; owkg ranks convert makes one from more\.csv"):
        read_ranks(tmp_path / "f")


@pytest.mark.parametrize("other", [{"note": [1, 2]}, {"relation": [0, 1]}])
def test_columns_of_two_types_in_compare(other):
    one = TABLE.with_columns(note=pl.lit("x"))
    two = TABLE.with_columns(**{name: pl.Series(values) for name, values in other.items()})
    if "relation" in other:
        with pytest.raises(ValueError, match=r"`systems` must .* of relations, or all ids"):
            owkg.compare({"a": one, "b": two}, "mrr", test="t")
    else:
        assert owkg.compare({"a": one, "b": two}, "mrr", test="t").pairs["difference"].item() == 0


def test_levels_of_an_index_of_pandas_are_columns():
    pandas = pytest.importorskip("pandas")
    rows = pandas.DataFrame(ROWS | {"model": ["m", "n"], "weight": [1.0, 3.0]})
    for levels in ("model", "weight", ["head", "relation", "tail"], ["candidates", "side"]):
        given = rows.set_index(levels)
        assert validated(given).select(TABLE.columns).equals(TABLE)
        assert owkg.evaluate(given, "mrr")["value"].to_list() == pytest.approx([1.0, 0.4])
    one = rows.drop(columns="model")
    assert owkg.evaluate(one.set_index("weight"), "mrr")["value"].item() == pytest.approx((1 + 3 * 0.4) / 4)
    assert validated(one.set_index("weight", drop=False))["weight"].to_list() == [1.0, 3.0]
    other = one.set_axis(pandas.Index([5, 6], name="weight"))
    with pytest.raises(ValueError, match="levels of the index, of different names, got 'weight' twice"):
        validated(other)


@pytest.mark.parametrize("form", ["polars", "pandas", "columns", "rank table", "path"])
def test_tables_by_name_are_models(tmp_path, form):
    frame = {
        "polars": lambda: TABLE,
        "pandas": lambda: pytest.importorskip("pandas").DataFrame(ROWS),
        "columns": lambda: ROWS,
        "rank table": lambda: RankTable(TABLE),
        "path": lambda: str(_written(TABLE, tmp_path / "r.csv")),
    }[form]()
    best = TABLE.with_columns(optimistic=1, pessimistic=1, model=pl.lit("other"))
    found = owkg.evaluate({"a": frame, "b": best}, "mrr", ci=None)
    assert found.select("model", "value").rows() == [("a", 0.7), ("b", 1.0)]
    assert found.columns == owkg.evaluate(best, "mrr", ci=None).columns
    with pytest.raises(
        ValueError, match="`table` must be one table, got a table or path by each name: 'a', 'b'"
    ):
        validated({"a": frame, "b": best})


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"a": TABLE, "": TABLE}, "`ranks` must have non-empty text as names, got ''"),
        ({"a": TABLE, "b": TABLE.drop("side")}, "`ranks` named 'b' must be a rank table: .*no column side"),
        (
            {"a": TABLE.with_columns(model=pl.col("head"))},
            "must hold one model under each name, got 2 under .* 'a'",
        ),
    ],
)
def test_bad_tables_by_name(tables, message):
    with pytest.raises(ValueError, match=message):
        owkg.evaluate(tables, "mrr")


@pytest.mark.parametrize("given", [ROWS | {"head": ["a", "\udc80"]}, ROWS | {"\udc80": [1, 2]}])
def test_a_lone_surrogate_is_named(given):
    with pytest.raises(ValueError, match=r"^`table` must hold text that UTF-8 can write, got '\\udc80'"):
        validated(given)


WIDE_TEXT = "h,r,t,head_rank,tail_rank\na,r,c,2,1\na,s,c,"
LR = "h,r,t,lhs,rhs\na,r,c,1,2\n"
NAMED = "head,relation,tail,side,rank,candidates\na,r,c,tail,1,9\na,s,c,tail,"


@pytest.mark.filterwarnings("ignore:.*another spelling")
@pytest.mark.parametrize(
    ("text", "how", "message"),
    [
        (NAMED + "99999999999999999999,9", "realistic", "line 3: rank must be whole or half, "
         r"from 1 to 2\^52, .*, got '99999999999999999999'"),
        (NAMED + "9,8", "realistic", r"line 3: rank must be at most candidates \(8\), got 9\."),
        (NAMED + "8.5,8", "realistic", r"line 3: rank must be at most candidates \(8\), got 8\.5\."),
        (NAMED + "9,8", "untied", r"line 3: rank must be at most candidates \(8\), got 9\."),
        (WIDE_TEXT + "1,\n", "untied", "line 3: tail_rank is missing"),
        (WIDE_TEXT + ",1\n", "realistic", "line 3: head_rank is missing"),
        (WIDE_TEXT + "1,x\n", "realistic", "line 3: tail_rank must be whole or half"),
        (WIDE_TEXT + "1,1.5\n", "untied", "line 3: tail_rank must be a whole number"),
        ("h,r,t,rank\na,r,c,1\n", "untied", "no column side; columns found: h, r, t, rank; .* as side=NAME"),
        (LR, "untied", "no column rank; columns found: h, r, t, lhs, rhs; `columns` names "
         "the columns that hold ranks, as rank=NAME or head_rank=NAME,tail_rank=NAME"),
        (LR, None, "columns found: h, r, t, lhs, rhs; .* head_rank=NAME,tail_rank=NAME"),
        ("head_rank,tail_rank\n1,2\n", "untied", r"test has 2 triples: they must be .* --split NAME"),
    ],
)  # fmt: skip
def test_messages_have_the_names_and_values_of_the_file(tmp_path, text, how, message):
    (tmp_path / "r.csv").write_text(text)
    graph = None if "candidates" in text else GRAPH
    with pytest.raises(ValueError, match=message):
        read_ranks(tmp_path / "r.csv", graph=graph, **({how: True} if how else {}))


def test_columns_of_a_folder_are_as_they_stand_in_its_files(tmp_path):
    path = _written(RENAMED.rename({"pessimistic": "worst"}), tmp_path / "f" / "0.parquet").parent
    own = {name: column for name, column in OWN.items() if name != "side"}
    with pytest.raises(
        ValueError, match=r"no column side, .*; columns found: subject, relation, object, pred"
    ):
        read_ranks(path, columns=own)


def test_more_candidates_than_ranks_are_summed_over(tmp_path):
    wide = TABLE.with_columns(candidates=pl.Series([9, 3 * 10**9]))
    assert read_ranks(_written(wide, tmp_path / "r.csv")).frame["candidates"][1] == 3 * 10**9
    message = "row 2: candidates must be at most 100,000,000, .* got 3,000,000,000"
    with pytest.raises(ValueError, match=message):
        owkg.evaluate(tmp_path / "r.csv", "mrr")
    with pytest.raises(ValueError, match=f"b: {message}"):
        owkg.compare({"a": TABLE, "b": wide}, "mrr", test="t")
