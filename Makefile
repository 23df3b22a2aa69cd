# `make test` and `make train` work on a machine with nothing installed but Python: they create .venv first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := python -m pip install --quiet --disable-pip-version-check
export OPENBLAS_NUM_THREADS = 1
TESTS ?= tests
PYTHONS ?= $(wildcard $(HOME)/.pyenv/versions/3.1[1-4]*/bin/python3)

.DEFAULT_GOAL := help
.PHONY: help train test lint types kernels imports unit test-slow test-sb3 test-ray test-pythons mutate fuzz bench docs \
	tutorials zoo release-check format clean

help:
	@echo "make train          train a policy on a small task for a minute; writes runs/"
	@echo "make test           ruff, mypy, import contracts and the test suite; writes nothing outside caches"
	@echo "make unit           the test suite only (TESTS=tests/cli for a part of it)"
	@echo "make test-slow      the tests that take minutes: coverage simulations and long runs"
	@echo "make test-sb3       the Stable-Baselines3 callback with real models; creates .venv-sb3"
	@echo "make test-ray       grids on Ray clusters; creates .venv-ray"
	@echo "make test-pythons   the test suite on several interpreters (PYTHONS=...); creates .venv-3.x"
	@echo "make mutate         mutation testing of the training wiring with mutmut; writes mutants/"
	@echo "make fuzz           commands on randomly damaged and forged files"
	@echo "make bench          run the speed benchmarks; writes results/bench_*.csv"
	@echo "make docs           build the documentation; open build/site/index.html"
	@echo "make tutorials      run the tutorials at full size; rewrites their output in docs/tutorials"
	@echo "make zoo            add runs to the model zoo (RUNS=...); writes src/steingate/zoo/ and docs/zoo/"
	@echo "make release-check  build and install wheel and sdist (PYTHONS=...); writes dist/, results/install_sizes.csv"
	@echo "make format         format and fix the code with ruff; rewrites source files"
	@echo "make clean          remove virtual environments and caches"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/$(PIP) -e '.[$*]'
	@touch $@

train: $(VENV)/.installed-all
	$(BIN)/python examples/train_circle.py

# mypy uses one core for half a minute, so it runs beside the others. The kernels are compiled once here, because the
# two processes of pytest would compile all of them twice.
test: $(VENV)/.installed-test
	$(MAKE) --no-print-directory -j 2 types kernels lint imports
	$(MAKE) --no-print-directory unit

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-test
	$(BIN)/mypy

kernels: $(VENV)/.installed-test
	$(BIN)/python -m tests.compile_kernels

imports: $(VENV)/.installed-test
	$(BIN)/lint-imports --no-cache

unit: $(VENV)/.installed-test
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow" $(TESTS)

test-slow: $(VENV)/.installed-test
	$(BIN)/pytest -n 2 --dist worksteal -m slow $(TESTS)

# Torch first: Stable-Baselines3 alone would install the large build for graphics cards.
TORCH ?= torch==2.13.0
SB3_VENV ?= .venv-sb3
$(SB3_VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(SB3_VENV)
	$(SB3_VENV)/bin/$(PIP) $(TORCH)
	$(SB3_VENV)/bin/$(PIP) -e '.[sb3]' pytest hypothesis
	@touch $@

test-sb3: $(SB3_VENV)/.installed
	$(SB3_VENV)/bin/python -m pytest tests/integrations

test-ray:
	$(MAKE) --no-print-directory .venv-ray/.installed-test .venv-ray/.installed-ray VENV=.venv-ray
	.venv-ray/bin/pytest -m "slow or not slow" tests/experiments/test_ray_engine.py

test-pythons:
	@for python in $(PYTHONS); do \
		venv=.venv-$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
		echo "== $$python"; \
		$(MAKE) --no-print-directory unit PYTHON=$$python VENV=$$venv || exit 1; \
	done

# Modules and tests are listed in pyproject.toml, [tool.mutmut].
mutate: $(VENV)/.installed-test
	$(BIN)/$(PIP) 'mutmut>=3.8'
	rm -rf mutants
	$(BIN)/mutmut run --max-children 2
	$(BIN)/mutmut results

FUZZ ?= --seed 0
fuzz: $(VENV)/.installed-test
	$(BIN)/python -m tests.fuzz $(FUZZ)

bench: $(VENV)/.installed-all
	@for file in benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

docs: $(VENV)/.installed-docs
	$(BIN)/python docs/build_tables.py
	$(BIN)/python docs/build_figures.py
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -c docs -d build/doctrees -b html . build/site
	@echo "Open build/site/index.html"

tutorials: $(VENV)/.installed-all
	$(BIN)/python docs/tutorials.py

zoo: $(VENV)/.installed-all
	$(BIN)/python -m tests.build_zoo $(RUNS)
	$(BIN)/python docs/build_tables.py docs/zoo.md

RELEASE_VENV ?= .venv-release
$(RELEASE_VENV)/.installed:
	$(PYTHON) -m venv $(RELEASE_VENV)
	$(RELEASE_VENV)/bin/$(PIP) build twine uv
	@touch $@

release-check: $(RELEASE_VENV)/.installed $(VENV)/.installed-all
	TORCH=$(TORCH) $(RELEASE_VENV)/bin/python tests/release_check.py --keep $(PYTHONS)
	$(BIN)/python docs/build_tables.py docs/install.md

format: $(VENV)/.installed-test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv .venv-* build dist mutants .pytest_cache .mypy_cache .ruff_cache .hypothesis
