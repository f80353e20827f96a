# One door for each job. `make demo` and `make test` do all the set-up on a fresh machine.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BENCH_READY := $(VENV)/.ready-bench

.PHONY: setup demo serve kernels test flips traffic cases reference check style bench bench-quick format clean

setup: $(READY)

$(READY): pyproject.toml scripts/ensure-python scripts/ensure-java
	@scripts/ensure-python $(PYTHON)
	@scripts/ensure-java
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable '.[dev]'
	@touch $(READY)

demo: setup
	$(BIN)/tureen demo

serve: setup
	$(BIN)/python -m tureen.service

kernels: setup
	$(BIN)/python -c 'import tureen.aggregates.aggregate_warming as a, tureen.matching as m; m.warm_up(); a.warm_up()'

# Compiled in advance, because otherwise each process of the tests would compile the same loops at the same time.
test: kernels
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --durations 15

flips: setup
	$(BIN)/python -m tests.damage.flips 5000

traffic: setup
	$(BIN)/python -m tests.consistency.traffic --minutes 10

cases: setup
	$(BIN)/python -m tests.cases.regenerate

reference: setup
	$(BIN)/python -m tureen.cli.reference docs/cli.md

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

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
