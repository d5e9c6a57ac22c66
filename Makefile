# make demo   set up, then run the main job end to end; results under out/
# make test   set up, then run all tests
# make fuzz   set up, then read, damage, divide and interrupt files at random; CASES=10000 of each kind, SEED=0
# make bench  set up, then measure speed where the code has changed since; docs/evidence/performance.md has the tables
#             (PEERS=1: with PyKEEN, ranx and trec_eval, in an environment of their own; ARGS='--parts judge,audit')
# make accelerator  measure what depends on the device, nine minutes at most; go on where it stopped
#             (ARGS=--quick: tiny sizes; PYTHON_RUN=python3: with that interpreter's packages, nothing is installed)
# make test-oldest  the oldest versions that pyproject.toml allows, in an environment of their own: a quick part
#             of the tests
# make environments  every command in every environment of docs/evidence/environments.md, whose table it writes; half an hour
# make lint   set up, then check style (ruff) and types (pyright, which fetches itself from npm)
# make docs   set up, then execute the notebooks in place
# make site   set up, then build the documentation; out/site/index.html
#
# Needs make and python3 >= 3.11. Everything is installed into the virtual environment $(VENV).

PYTHON ?= python3
VENV ?= .venv
OLDEST ?= .venv-oldest
OUT ?= out
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
CASES ?= 10000
SEED ?= 0
.PHONY: help demo test test-oldest environments fuzz lint bench accelerator docs site clean

help:
	@sed -n 's/^# //p' Makefile

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "owkg needs python3 >= 3.11, found " + sys.version.split()[0])'
	@echo "==> making the virtual environment $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@echo "==> installing owkg and its tools (tested versions of constraints.txt; a few minutes)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test,docs,bench]'
	@touch $@

## Small runs compile for longer than they compute. These options of XLA halve that on a CPU; the kernels are slower,
## so `make bench` is without. They are known to the jaxlib of constraints.txt; for another one set XLA_FLAGS yourself.
demo test test-oldest environments fuzz: export XLA_FLAGS ?= --xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=1

## What one command of the demo has compiled, the next one reads.
demo: export JAX_COMPILATION_CACHE_DIR := $(abspath $(OUT))/.jax
demo: export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS := 0.1
demo: export JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES := -1
demo: $(STAMP)
	@echo "==> closed forms of the paper's example (owkg theory)"
	@$(BIN)/owkg theory --metric mrr --metric hits@10 --metric p-mrr@1/2 --strength 0.7 --sparsity 0.35 --num-answers 43 --num-entities 14505
	@echo "==> the same by Monte Carlo (owkg simulate)"
	@$(BIN)/owkg simulate --metric mrr --metric hits@10 --metric p-mrr@1/2 --strength 0.7 --sparsity 0.35 --num-answers 43 --num-entities 14505
	@echo "==> queries required to tell strength 0.70 from 0.75 (owkg power)"
	@$(BIN)/owkg power --metric mrr --metric hits@10 --metric p-mrr@1/2 --strength 0.7 --other-strength 0.75 --sparsity 0.35 --num-answers 43 --num-entities 14505
	@echo "==> true MRR against reported MRR, when answers are missing"
	@$(BIN)/python -m simulations.yang2022 reported-mrr --out $(OUT)
	@echo "==> Figure 1: MRR against strength under missing facts"
	@$(BIN)/python -m simulations.yang2022 figure1 --quick --out $(OUT)
	@echo "==> Figure 2: the same when missing facts correlate with predictions"
	@$(BIN)/python -m simulations.yang2022 figure2 --quick --out $(OUT)
	@echo "==> queries required, by metric and sparsity"
	@$(BIN)/python simulations/queries_required.py --quick --out $(OUT)
	@echo "==> closed form against Monte Carlo against published"
	@$(BIN)/python -m simulations.yang2022 closed-forms --quick --out $(OUT)
	@echo "==> a small graph, and the ranks of four scorers of it"
	@$(BIN)/python simulations/example_ranks.py --out $(OUT)
	@$(BIN)/owkg kg info $(OUT)/example/graph
	@echo "==> the same ranks under four tie rules: a constant scorer has optimistic MRR 1, exact AMRR 0 (owkg metrics)"
	@$(BIN)/owkg metrics $(OUT)/example/constant.parquet $(OUT)/example/random.parquet $(OUT)/example/oracle.parquet --by ties --metric mrr,hits@10,amri,amrr,zmrr
	@echo "==> every metric of one scorer, and its figures; of two scorers, which one PROBE puts first"
	@$(BIN)/owkg metrics $(OUT)/example/oracle.parquet --kg $(OUT)/example/graph
	@$(BIN)/owkg metrics $(OUT)/example/frequency.parquet $(OUT)/example/oracle.parquet --kg $(OUT)/example/graph --figures $(OUT)
	@echo "==> PROBE of both by sharpness and by robustness to popularity, as in its Table 2"
	@$(BIN)/python -m simulations.probe2026 table2 --kg $(OUT)/example/graph --ranks $(OUT)/example/frequency.parquet --ranks $(OUT)/example/oracle.parquet --out $(OUT)
	@echo "==> rank metrics against the number of candidates"
	@$(BIN)/python -m simulations.hoyt2022 chance-adjustment --quick --out $(OUT)
	@echo "==> a closed world of families, and one of them drawn"
	@$(BIN)/owkg family-tree generate $(OUT)/families --overwrite
	@$(BIN)/owkg family-tree verify $(OUT)/families
	@$(BIN)/owkg family-tree draw --max-tree-size 40 --seed 1 --out $(OUT)/family_tree.png
	@echo "==> open worlds of known incompleteness, drawn from it"
	@$(BIN)/owkg sample $(OUT)/families/facts.tsv $(OUT)/benchmarks --density 0.95,0.85,0.75,0.65 --nested --overwrite
	@$(BIN)/owkg kg info $(OUT)/benchmarks/d0.75
	@echo "==> generated families beside the published ones"
	@$(BIN)/python simulations/family_tree_statistics.py --quick --out $(OUT)
	@echo "==> an embedding model trained, ranked, and measured beside the truth under noise"
	@$(BIN)/owkg train $(OUT)/example/graph --model complex --dim 64 --epochs 30 --out $(OUT)/run --overwrite
	@$(BIN)/owkg rank $(OUT)/run --split test --name complex --score --out $(OUT)/complex.parquet
	@$(BIN)/owkg metrics $(OUT)/complex.parquet $(OUT)/example/oracle.parquet --metric mrr,hits@10,amri,zmrr
	@echo "==> models trained on an open world of families, three seeds"
	@$(BIN)/python simulations/trained_models.py --graph families --quick --out $(OUT)
	@echo "==> two models along their training, on sparse and on full test sets"
	@$(BIN)/python -m simulations.yang2022 open-world --preset quick --out $(OUT)/open_world
	@echo "==> which of four scorers is best, by all labels and by those of popular entities, and how many queries it takes to see it"
	@$(BIN)/owkg compare $(OUT)/example/random.parquet $(OUT)/example/frequency.parquet $(OUT)/complex.parquet $(OUT)/example/oracle.parquet --qrels $(OUT)/example/full.qrels --qrels $(OUT)/example/sparse.qrels --out $(OUT)/compared
	@$(BIN)/owkg stability $(OUT)/example/random.parquet $(OUT)/example/frequency.parquet $(OUT)/complex.parquet $(OUT)/example/oracle.parquet --metric mrr,macro-map@20 --size 0.05,0.1,0.2,0.5,0.9
	@echo "==> the example of the tutorials: may one model be called better, when answers are missing? with a report (owkg audit)"
	@$(BIN)/owkg example $(OUT)/start --overwrite
	@$(BIN)/owkg audit $(addprefix $(OUT)/start/,a.parquet b.parquet c.parquet) --metric mrr --sparsity 0.2,0.4 --report $(OUT)/audit.html
	@echo "==> few judgements: plan, draw, judge by the truth, plan from the pilot, estimate; predictions to accept"
	@$(BIN)/owkg pool $(addprefix $(OUT)/start/,a.run b.run c.run) --kg $(OUT)/start/graph --depth 10 --plan --metric ap --width ap=0.07
	@$(BIN)/owkg pool $(addprefix $(OUT)/start/,a.run b.run c.run) --kg $(OUT)/start/graph --depth 10 --draw queries:30 --seed 7 --out $(OUT)/pool --overwrite
	@$(BIN)/owkg example $(OUT)/start --judge $(OUT)/pool/sheet.tsv
	@$(BIN)/owkg pool --pool $(OUT)/pool --plan --width ap=0.07
	@$(BIN)/owkg pool --pool $(OUT)/pool --more 30
	@$(BIN)/owkg example $(OUT)/start --judge $(OUT)/pool/sheet2.tsv
	@$(BIN)/owkg estimate --pool $(OUT)/pool --metric rr,ap
	@$(BIN)/owkg accept $(OUT)/start/c.run --kg $(OUT)/start/graph --precision 0.5 --drawn 100
	@echo "==> models ranked by sparse labels, by pools of depth 1 to 10, and by the truth"
	@$(BIN)/python -m simulations.zhou2022 pooling --preset quick --out $(OUT)/pooling
	@echo "==> entity alignment: what a smaller test alignment does to each metric"
	@$(BIN)/python -m simulations.berrendorf2020 alignment --quick --out $(OUT)
	@echo "==> done; everything is under $(OUT)/"

lint: $(STAMP)
	@echo "==> style (ruff), types (pyright) and who imports whom (import-linter)"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright --pythonpath $(BIN)/python
	@$(BIN)/lint-imports --no-cache

test: $(STAMP)
	@echo "==> tests (OWKG_DATA=$(or $(OWKG_DATA),not set: tests that need the data sets are skipped))"
	@$(BIN)/python -m pytest -n 2 --dist worksteal

$(OLDEST)/.installed: pyproject.toml constraints-oldest.txt
	@echo "==> making the virtual environment $(OLDEST), of the oldest versions"
	@$(PYTHON) -m venv $(OLDEST)
	@$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints-oldest.txt --editable '.[cluster,report]' beartype hypothesis pytest
	@touch $@

## Old versions of other libraries warn of each other: warnings are no errors here.
test-oldest: $(OLDEST)/.installed
	@echo "==> tests with the oldest versions"
	@$(OLDEST)/bin/python -m pytest -q -o filterwarnings= tests/golden tests/report/test_page.py tests/train/test_workers.py::test_a_scheduler_by_its_address_and_gpus

environments: $(STAMP)
	@echo "==> every command in every environment"
	@$(BIN)/python tests/environments/matrix.py --page docs/evidence/environments.md

fuzz: $(STAMP)
	@echo "==> $(CASES) cases of each reader, of datasets against tables, and processes (seed $(SEED))"
	@OWKG_FUZZ=$(CASES) $(BIN)/python -m pytest -q tests/fuzz -n 2 --dist worksteal --hypothesis-seed=$(SEED)

bench: $(STAMP) $(if $(PEERS),.venv-peers/.installed)
	@$(BIN)/python benchmarks/all.py --out $(OUT) $(if $(PEERS),--peers .venv-peers/bin/python) $(ARGS)

.venv-peers/.installed:
	@echo "==> an environment with the peers"
	@python3 -m venv .venv-peers
	@.venv-peers/bin/pip install --quiet -e . pykeen==1.11.1 ranx pytrec_eval
	@touch $@

accelerator: $(if $(PYTHON_RUN),,$(STAMP))
	@echo "==> speed on the device, each beside its limit"
	@$(or $(PYTHON_RUN),$(BIN)/python) benchmarks/accelerator.py --out $(OUT) $(ARGS)

docs: $(STAMP)
	@echo "==> executing the notebooks"
	@$(BIN)/jupyter nbconvert --to notebook --execute --inplace --ExecutePreprocessor.record_timing=False notebooks/*.ipynb notebooks/lessons/*.ipynb

site: $(STAMP)
	@echo "==> building the documentation"
	@$(BIN)/sphinx-build -q -W --keep-going -b html docs $(OUT)/site
	@echo "==> $(OUT)/site/index.html"

clean:
	rm -rf $(VENV) $(OLDEST) .venv-peers $(OUT) .pytest_cache .ruff_cache .hypothesis
