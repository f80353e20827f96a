# One door for each job. `make demo` and `make test` do all the set-up on a fresh machine.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CLASSES := $(VENV)/spark-classes.jsa
BENCH_READY := $(VENV)/.ready-bench
WORKERS ?= 3

# Every process compiles the modules that it imports, unless some process may write the result.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo serve kernels join-kernels browser test explore flips traffic cases judge reference screenshots check style bench bench-quick format clean

setup: $(READY)

$(READY): pyproject.toml scripts/ensure-python scripts/ensure-java
	@scripts/ensure-python $(PYTHON)
	@scripts/ensure-java
	$(PYTHON) -m venv $(VENV)
	@scripts/install $(VENV) --editable '.[dev]'
	@touch $(READY)

demo: setup
	$(BIN)/tureen demo

serve: setup
	$(BIN)/python -m tureen.service

# In two processes, because each compiles in one thread.
kernels: setup
	$(BIN)/python -c 'import tureen.aggregates.aggregate_warming as a; a.warm_up()' & \
	$(BIN)/python -c 'import tureen.matching as m; m.warm_up()' && wait $$!

# They call loops of matching.
join-kernels: | kernels
	$(BIN)/python -c 'import tests.join_kernels as j; j.warm_up()'

$(CLASSES): $(READY) | kernels
	$(BIN)/python -m tests.class_archive

# It is installed while kernels are compiled.
browser:
	@scripts/ensure-chromium

PYTEST := $(BIN)/python -m pytest -p tests.forked_processes --processes $(WORKERS)
PREPARE = $(MAKE) -j3 browser join-kernels $(CLASSES)

# Kernels and classes are prepared, because otherwise each process of the tests would compile and load them itself.
test: setup
	$(PYTEST) --meanwhile '$(PREPARE)' --durations 15

# Many new random examples, where `make test` runs a few that are always the same.
explore: setup
	TUREEN_EXPLORE=20 $(PYTEST) --timeout 0 $$(grep -rl --include 'test_*.py' 'import example_settings' tests)

flips: setup
	$(BIN)/python -m tests.damage.flips 5000

traffic: setup
	$(BIN)/python -m tests.consistency.traffic --minutes 10

cases: setup
	$(BIN)/python -m tests.cases.regenerate

judge: setup
	TUREEN_JUDGE=all $(BIN)/python -m pytest --quiet tests/cases/test_against_spark.py

reference: setup
	$(BIN)/python -m tureen.cli.reference docs/cli.md
	$(BIN)/python -m scripts.decisions

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

screenshots: setup browser
	$(BIN)/python -m scripts.screenshots

style: setup
	$(BIN)/python -m scripts.style

$(BENCH_READY): $(READY)
	$(BIN)/pip install --quiet --editable '.[dev,bench]'
	@touch $(BENCH_READY)

bench: $(BENCH_READY)
	$(BIN)/python -m benchmarks

bench-quick: $(BENCH_READY)
	$(BIN)/python -m benchmarks --quick

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .venv-flink .mypy_cache .ruff_cache .pytest_cache .hypothesis
