# Two commands on a fresh machine: `make train` and `make test`. Each makes .venv when it is missing.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export OPENBLAS_NUM_THREADS = 1
TESTS ?= tests
PYTHONS ?= $(wildcard $(HOME)/.pyenv/versions/3.11*/bin/python3 $(HOME)/.pyenv/versions/3.12*/bin/python3 $(HOME)/.pyenv/versions/3.13*/bin/python3 $(HOME)/.pyenv/versions/3.14*/bin/python3)

.DEFAULT_GOAL := help
.PHONY: help train test test-slow test-sb3 test-pythons lint format types imports unit bench docs tutorials release-check fuzz clean

help:
	@echo "make train         train SteinGate on a small task for about a minute"
	@echo "make test          linters, type checks, import order and the test suite"
	@echo "make test-slow     the tests that take minutes (coverage simulations, long runs)"
	@echo "make test-sb3      the Stable-Baselines3 callback with real models, in a venv of its own"
	@echo "make test-pythons  the test suite on every interpreter at hand (PYTHONS=...)"
	@echo "make bench         the speed claims, measured"
	@echo "make docs          the documentation site, in build/site; a broken link fails"
	@echo "make tutorials     run the tutorials at full size and write their pages anew"
	@echo "make release-check build wheel and sdist, install them everywhere, try them (PYTHONS=...)"
	@echo "make fuzz          damaged files, lost outputs, kills: a table of tries and failures (minutes)"
	@echo "make format        rewrite the code in the house style"
	@echo "make clean         remove .venv and caches"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-all: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[all]'
	@touch $@

$(VENV)/.installed-test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@ $(VENV)/.installed-all

train: $(VENV)/.installed-all
	$(BIN)/python examples/train_circle.py

test: lint types imports unit

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-test
	$(BIN)/mypy

imports: $(VENV)/.installed-test
	$(BIN)/lint-imports --no-cache

unit: $(VENV)/.installed-test
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow" $(TESTS)

test-slow: $(VENV)/.installed-test
	$(BIN)/pytest -n 2 --dist worksteal -m slow $(TESTS)

# Torch first: a plain install of Stable-Baselines3 would bring the large build for graphics cards.
TORCH ?= torch==2.13.0
SB3_VENV ?= .venv-sb3
$(SB3_VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(SB3_VENV)
	$(SB3_VENV)/bin/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	$(SB3_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[sb3]' pytest hypothesis
	@touch $@

test-sb3: $(SB3_VENV)/.installed
	$(SB3_VENV)/bin/python -m pytest tests/integrations

test-pythons:
	@for python in $(PYTHONS); do \
		venv=.venv-$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
		echo "== $$python"; \
		$(MAKE) --no-print-directory unit PYTHON=$$python VENV=$$venv || exit 1; \
	done

bench: $(VENV)/.installed-all
	@for file in benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

$(VENV)/.installed-docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@ $(VENV)/.installed-all

docs: $(VENV)/.installed-docs
	$(BIN)/python docs/build_tables.py
	$(BIN)/python docs/build_figures.py
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -c docs -d build/doctrees -b html . build/site

tutorials: $(VENV)/.installed-all
	$(BIN)/python docs/tutorials.py

RELEASE_VENV ?= .venv-release
$(RELEASE_VENV)/.installed:
	$(PYTHON) -m venv $(RELEASE_VENV)
	$(RELEASE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check build twine uv
	@touch $@

release-check: $(RELEASE_VENV)/.installed
	TORCH=$(TORCH) $(RELEASE_VENV)/bin/python tests/release_check.py --keep $(PYTHONS)
	$(PYTHON) docs/build_tables.py docs/install.md

FUZZ ?= --seed 0 --out build/fuzz.csv
fuzz: $(VENV)/.installed-test
	$(BIN)/python -m tests.fuzz $(FUZZ)

format: $(VENV)/.installed-test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv .venv-3.* .venv-sb3 .venv-release build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
