"""The `owkg` command: exit code 0 for success, 2 for bad input, 128 + n where signal n ended it."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from owkg.cli.comparisons.audit import audit
from owkg.cli.comparisons.compare import compare
from owkg.cli.comparisons.missing import missing
from owkg.cli.comparisons.pool import pool
from owkg.cli.comparisons.stability import stability
from owkg.cli.embeddings.align import align
from owkg.cli.embeddings.classify import classify
from owkg.cli.embeddings.evaluate import evaluate
from owkg.cli.embeddings.models import models
from owkg.cli.embeddings.train import train
from owkg.cli.errors import called, heard
from owkg.cli.graphs.chance import chance
from owkg.cli.graphs.family_tree import family_tree_app
from owkg.cli.graphs.kg import kg_app
from owkg.cli.graphs.sample import sample
from owkg.cli.open_world.power import power
from owkg.cli.open_world.simulate import simulate
from owkg.cli.open_world.theory import theory
from owkg.cli.ranks.conformance import conformance
from owkg.cli.ranks.ir import ir
from owkg.cli.ranks.metrics import metrics
from owkg.cli.ranks.ranks import ranks_app

_SETTING = "--sparsity 0.35 --num-answers 43 --num-entities 14505"

app = typer.Typer(
    name="owkg",
    help="How far can a link-prediction result on an incomplete knowledge graph be trusted?",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _examples(*lines: str) -> str:
    return "Examples:\n\n" + "\n\n".join(lines)


app.command(
    epilog=_examples(
        f"owkg theory --strength 0.7 {_SETTING}",
        f"owkg theory --metric mrr --metric hits@10 --strength 0.7 --correlation 0.1 {_SETTING}",
        f"owkg theory --strength 0.7 {_SETTING} --missing node --format json",
        "owkg theory --strength 0.7 --sparsity 0.35 --num-answers 12:300,43:200 --num-entities 14505",
    )
)(theory)
app.command(
    epilog=_examples(
        f"owkg simulate --strength 0.7 {_SETTING} --trials 200000 --seed 0",
        f"owkg simulate --metric mrr --metric mr --strength 0.7 {_SETTING} --prediction score",
        f"owkg simulate --strength 0.7 --other-strength 0.75 {_SETTING} --format json",
    )
)(simulate)
app.command(
    epilog=_examples(
        f"owkg power --strength 0.7 --other-strength 0.75 {_SETTING} --inconsistency 0.05",
        f"owkg power --metric mrr --metric p-mrr@1/2 --strength 0.7 --other-strength 0.75 {_SETTING} "
        "--num-queries 500",
        f"owkg power --all-metrics --strength 0.7 --other-strength 0.75 {_SETTING}",
    )
)(power)
app.command(
    epilog=_examples(
        "owkg metrics ranks.parquet",
        "owkg metrics ranks.parquet --kg data/fb15k237 --by side,category --format json",
        "owkg metrics transe.parquet complex.parquet --metric mrr,hits@10,amri --format latex",
        "owkg metrics --sampled-negatives 500 --num-entities 2500604 --published mrr=0.98,hits@10=0.99",
        "owkg metrics ranks.parquet --metric probe@0.5,0.5,macro-map@20 --interval bca --replicates 2000",
    )
)(metrics)
app.command(
    epilog=_examples(
        "owkg chance data/fb15k237 --metric mrr,hits@10,mr",
        "owkg chance data/fb15k237 --adjust mrr=0.358 --adjust mr=177",
        "owkg chance data/nations data/umls data/wn18rr --out chance.parquet",
    )
)(chance)
app.command(
    epilog=_examples(
        "owkg train data/nations --model complex --dim 128 --out run",
        "owkg train data/fb15k237 --model rotate --num-negatives 256 --option margin=9 --out run",
        "owkg train data/fb15k237 --config run.toml --seed 1 --out run1",
        "owkg train data/fb15k237 --out run1 --resume",
    )
)(train)
app.command(epilog=_examples("owkg models", "owkg models --format json"))(models)
app.command(
    epilog=_examples(
        "owkg evaluate run --split test --out ranks.parquet",
        "owkg evaluate run --sample 0.01 --metric mrr,hits@10",
        "owkg evaluate run --split test --out ranks.parquet --lists complex.run.gz --depth 100",
        "owkg evaluate --embeddings transe.npz --model transe --norm 1 --kg data/nations --out ranks.parquet",
        "owkg evaluate --embeddings rotate.safetensors --model rotate --kg data/umls --sides tail --raw "
        "--out ranks.parquet",
    )
)(evaluate)
app.command(
    epilog=_examples(
        "owkg classify run",
        "owkg classify run --thresholds global --by category --out complex.parquet --figure curves.png",
        "owkg classify complex.parquet transe.csv --metric accuracy,f1,roc-auc --format json",
        "owkg classify --embeddings transe.npz --model transe --kg data/codex-s --negatives frequency",
    )
)(classify)
app.command(
    epilog=_examples(
        "owkg align data/dbp15k/zh_en --out ranks.parquet",
        "owkg align data/dbp15k/zh_en --model raw --out raw.parquet --seed 1",
        "owkg align data/dbp15k/zh_en --embeddings mine.npz --similarity cosine --assign --out mine.parquet",
    )
)(align)
app.command(
    epilog=_examples(
        "owkg pool transe.run complex.run.gz --depth 10 --kg data/fb15k237 --out pool --truth test",
        "owkg pool runs.trec --depth 100 --kg benchmark --out pool --truth qrels_full.txt --closed-world",
        "owkg pool --read sheet.tsv --read other.tsv --pool pool --out judged.qrels --conflicts third.tsv",
        "owkg pool --read sheet.tsv --read other.tsv --third third.tsv --pool pool --out judged.qrels "
        "--overwrite",
    )
)(pool)
app.command(
    epilog=_examples(
        "owkg missing judged.qrels --kg data/fb15k237",
        "owkg missing judged.qrels --kg data/fb15k237 --by category,side --format json",
    )
)(missing)
app.command(
    epilog=_examples(
        "owkg audit transe.parquet complex.parquet",
        "owkg audit transe.parquet complex.parquet --kg data/fb15k237 --lists transe.run.gz "
        "--lists complex.run.gz --out audited",
        "owkg audit transe.parquet complex.parquet --sparsity 0.5,0.7 --report audit.html",
        "owkg audit a.run b.run --qrels test.qrels --format json",
    )
)(audit)
app.command(
    epilog=_examples(
        "owkg ir bm25.run --qrels topics.qrels --metric AP,nDCG@10,P@10",
        "owkg ir bm25.run bert.run --qrels topics.qrels --per-query each.csv",
        "owkg ir bm25.run --qrels topics.qrels --metric map,ndcg_cut_10 --format trec",
    )
)(ir)
app.command(
    epilog=_examples(
        "owkg compare transe.parquet complex.parquet rotate.parquet --kg data/fb15k237",
        "owkg compare ranks.parquet --qrels full.qrels --qrels sparse.qrels --out compared",
        "owkg compare a.run b.run --qrels test --kg data/fb15k237 --ties pessimistic --by side,category",
        "owkg compare bm25.run bert.run --qrels topics.qrels --metric AP,nDCG@10,P@10 --format latex",
    )
)(compare)
app.command(
    epilog=_examples(
        "owkg stability transe.parquet complex.parquet rotate.parquet --draws 100 --out stability",
        "owkg stability ranks.parquet --metric mrr,macro-map@20 --size 0.1,0.5 --coefficient tau-ap",
    )
)(stability)
app.command(
    epilog=_examples(
        "owkg conformance",
        "owkg conformance --adapter pykeen,ranx --failed",
        "owkg conformance --results conformance.json --format json",
    )
)(conformance)
app.add_typer(family_tree_app)
app.command(
    epilog=_examples(
        "owkg sample facts.tsv benchmark --density 0.75 --train-rate 0.7",
        "owkg sample facts.tsv benchmarks --density 0.95,0.85,0.75,0.65 --nested --missing node --seed 1",
        "owkg sample facts.parquet benchmark --density 0.5 --valid-rate 0.1 --num-queries all --both-sides",
    )
)(sample)
app.add_typer(kg_app)
app.add_typer(ranks_app)


def _version(value: bool) -> None:
    if value:
        from owkg import __version__

        print(f"owkg {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    return called("owkg", app, arguments)


def run() -> None:
    """The command in a process of its own, whose signals it hears."""
    heard()
    sys.exit(main())
