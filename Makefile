# Every target builds the environment it needs in .venv; nothing has to be prepared.
PYTHON ?= python3
BIN := .venv/bin

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo reproduce reproduce-all check test test-slow test-all mutants lint typing format docs check-docs \
  bench bench-smoke bench-peers bench-prediction bench-scale bench-field bench-foreign release-check clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

demo: .venv/demo.stamp ## choose a few genes of 2,000, print the model, write the report
	$(BIN)/hardthresh demo

reproduce reproduce-all: export OMP_NUM_THREADS = 1
reproduce reproduce-all: export OPENBLAS_NUM_THREADS = 1
reproduce: .venv/demo.stamp ## run the experiments of the papers; ARGS names a paper or an item, without it they are listed
	$(BIN)/hardthresh reproduce $(ARGS)

reproduce-all: .venv/reproduce.stamp ## run every experiment of every paper (quick), and fail if one row is not as expected
	$(BIN)/hardthresh reproduce all $(ARGS)

PYTEST := $(BIN)/pytest --numprocesses=auto
UNIT := tests/arrays tests/certificates/test_swap.py tests/constraints tests/core tests/designs tests/diagnostics \
  tests/objectives/test_linear_model.py tests/conformance/test_losses.py tests/solvers/test_hard_instances.py \
  tests/test_layers.py tests/test_messages.py
QUICK := -m "not slow"
check test test-slow test-all mutants: export OMP_NUM_THREADS = 1
check test test-slow test-all mutants: export OPENBLAS_NUM_THREADS = 1
check test test-slow test-all: export PYTHONDONTWRITEBYTECODE = # or each process compiles the package and its tests again
check test test-slow: export HARDTHRESH_TESTS = fast
test-all: export HARDTHRESH_TESTS = all

check: lint ## check style and types, and run the unit tests: half a minute
	$(PYTEST) $(QUICK) $(UNIT) $(ARGS)

test: .venv/test.stamp ## run the quick tests and examples of the user guide: three and a half minutes on two cores
	$(PYTEST) $(if $(findstring .py,$(ARGS))$(findstring .rst,$(ARGS)),,$(QUICK)) $(ARGS)

test-slow: .venv/test.stamp ## run the tests and examples that make test leaves out: five minutes on two cores
	$(PYTEST) -m slow $(ARGS)

test-all: .venv/test.stamp ## run every combination of the tests, as each night: half an hour on two cores
	$(PYTEST) $(ARGS)

mutants: .venv/test.stamp ## apply deliberate mistakes and report those that the tests miss; ARGS names some of them
	$(BIN)/python tests/mutate.py $(ARGS)

lint: .venv/test.stamp ## check style, formatting and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

PYRIGHT := $(if $(shell command -v npx),npx --yes pyright@1.1.414)
typing: .venv/test.stamp ## check with mypy and pyright what type checkers tell users; without npm only with mypy
	$(BIN)/python tests/check_types.py $(PYRIGHT)

format: .venv/test.stamp ## rewrite the sources in the house style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: .venv/docs.stamp ## build the documentation; warnings are errors
	$(BIN)/sphinx-build -W --keep-going --quiet -b html docs docs/_build/html

BROWSER := docs/browser/node_modules/.package-lock.json
check-docs: ## look at the built documentation in Chromium: links, layout, colours, accessibility, search
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory $(BROWSER) && node docs/browser/check.mjs $(ARGS); \
	else echo "node and npm are not installed: the documentation was not checked"; fi

$(BROWSER): docs/browser/package-lock.json
	npm ci --prefix docs/browser --silent --no-audit --no-fund
	touch $@

bench: .venv/bench.stamp ## compare with other packages; ARGS are passed on
	$(BIN)/python benchmarks/run.py $(ARGS)

bench-smoke: .venv/bench.stamp ## check that the benchmarks run, and that passes and objectives did not get worse
	$(BIN)/python benchmarks/run.py --smoke $(ARGS)

bench-prediction: .venv/bench.stamp ## compare held-out predictions with those of other packages; ARGS are passed on
	$(BIN)/python benchmarks/predict.py $(ARGS)

bench-field: .venv/field.stamp ## compare the recovery of supports by benchopt; ARGS are passed on to it
	$(BIN)/python benchmarks/support_recovery/run.py $(ARGS)

bench-foreign: .venv/test.stamp ## run scikit-learn's own tests of OMP and logistic regression on our models
	$(BIN)/python benchmarks/foreign/run.py $(ARGS)

SCALE := --task formats,dask,disc,readings --seeds 5 --rows 125000 --cluster-gb 8 --gb 20 \
  --table benchmarks/results/scale
bench-scale: .bench-scale/stamp ## measure tables larger than memory on a quiet machine of 24 GB; ARGS with --task replace all settings
	.bench-scale/bin/python benchmarks/scale.py $(if $(findstring --task,$(ARGS)),,$(SCALE)) $(ARGS)

.bench-scale/stamp: benchmarks/scaling/requirements.txt pyproject.toml hatch_build.py src/hardthresh/_kernel.c
	$(PYTHON) -m venv $(@D)
	echo '*' >$(@D)/.gitignore
	$(@D)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

PEERS := $(patsubst benchmarks/requirements/%.txt,.bench-envs/%/stamp,$(wildcard benchmarks/requirements/*.txt))
bench-peers: $(PEERS) ## install the packages that need an environment of their own, for make bench

.bench-envs/%/stamp: benchmarks/requirements/%.txt
	$(PYTHON) -m venv $(@D)
	echo '*' >.bench-envs/.gitignore
	$(@D)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

release-check: .venv/release.stamp ## build, check and install what is published; PYTHONS names interpreters
	$(BIN)/python tests/check_release.py $(PYTHONS) $(ARGS)

clean: ## remove everything that make has built
	rm -rf .venv build dist docs/_build docs/auto_examples docs/generated docs/browser/node_modules \
	  .mypy_cache .pytest_cache .ruff_cache \
	  src/hardthresh/_kernel.abi3.so src/hardthresh/_kernel.pyd

.venv/demo.stamp: EXTRAS = cli,report
.venv/reproduce.stamp: EXTRAS = cli,report,torch
.venv/test.stamp: EXTRAS = test,peers
.venv/docs.stamp: EXTRAS = docs
.venv/bench.stamp: EXTRAS = bench
.venv/field.stamp: EXTRAS = field
.venv/release.stamp: EXTRAS = release
.venv/%.stamp: pyproject.toml hatch_build.py src/hardthresh/_kernel.c | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS)]'
	touch $@

$(BIN)/python:
	$(PYTHON) -m venv .venv
