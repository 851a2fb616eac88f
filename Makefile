# wasmsand's commands. `make` alone explains them.
#
# Everything runs in a private virtual environment (.venv), made at first use. Choose
# another Python with `make PYTHON=python3.13 ...`.

.DEFAULT_GOAL := help
.PHONY: help demo test lint check build packages bench conformance fuzz docs wheel clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed
EXTRAS := $(VENV)/installed-extras

# Directories that are ours to check; those of them that exist.
TYPED := $(wildcard src tools bench userland conformance fuzz tests)
PYTEST := $(BIN)/python -m pytest
# The recipes of a first impression; the others take longer to build.
DEMO := bash coreutils grep sed gawk findutils diffutils
# Give more to pytest: make test ARGS='-k fork -x'
ARGS ?=
# How long `make fuzz` attacks, and how long `make test` does, in seconds for all targets.
SECONDS_ ?= 600
TEST_SECONDS := 60
# Hundreds of tests watch processes, clocks and terminals of a machine that others use too. A
# failure counts if the test fails again with nothing beside it; both are printed. A test that
# passes only then is listed in build/flaky-tests.md, and is to be mended.
ONCE_MORE := make: some tests failed (above); these run once more, one at a time

help:
	@echo 'wasmsand: a computer for AI agents in a Python package'
	@echo
	@echo '  make demo          build the shell and core tools, run a first command, print timings'
	@echo '  make test          build everything, run every check and every test'
	@echo
	@echo '  make check         ruff, mypy --strict, import layers, unit tests: under a minute, no build'
	@echo '  make build         build the whole user space from source; cached'
	@echo '  make packages      build the second stage too: Python with numpy, pandas and others; takes long'
	@echo '  make bench         all timings, WebAssembly and native side by side'
	@echo "  make conformance   the programs' own test suites, in the sandbox and natively"
	@echo '  make fuzz          attack every interface for SECONDS_=600 seconds; ARGS names targets'
	@echo '  make docs          the documentation site in build/site; fails on a broken link'
	@echo '  make wheel         dist/*.whl with the built user space inside: installs without a compiler'
	@echo '  make clean         remove what was made here (not the build cache: wasmsand build --clean)'
	@echo
	@echo 'Then: .venv/bin/wasmsand --help'

$(STAMP): pyproject.toml tools/make_venv
	@tools/make_venv "$(PYTHON)" "$(VENV)"
	@touch $@

# What only tests and the site need, beyond a first impression: agent frameworks, mkdocs.
$(EXTRAS): $(STAMP)
	@echo 'make: installing the agent frameworks that have adapters, and what makes the site'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[adapters,docs]'
	@touch $@

demo: $(STAMP)
	$(BIN)/wasmsand build $(DEMO)
	$(BIN)/wasmsand doctor
	@echo
	$(BIN)/wasmsand run 'echo hello | tr a-z A-Z'
	@echo
	$(BIN)/wasmsand bench --quick

build: $(STAMP)
	$(BIN)/wasmsand build
	$(BIN)/wasmsand doctor

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(TYPED)
	$(BIN)/python tools/check_layers.py
	$(BIN)/python tools/make_async.py --check

check: lint
	$(PYTEST) -q -n auto -m 'not userland' $(ARGS)

packages: $(STAMP)
	$(BIN)/wasmsand build python-full

test: lint build $(EXTRAS)
	$(BIN)/python -m tests.differential
	$(BIN)/python -m fuzz --seconds $(TEST_SECONDS)
	$(PYTEST) -p tests.second_try -n auto $(ARGS) || { [ $$? -eq 1 ] && echo '$(ONCE_MORE)' && \
	    $(PYTEST) -p tests.second_try --second-try \
	        --last-failed --last-failed-no-failures none $(ARGS); }

bench: build
	$(BIN)/wasmsand bench $(ARGS)

conformance: build
	$(BIN)/python -m conformance $(ARGS)

fuzz: $(STAMP)
	$(BIN)/python -m fuzz --seconds $(SECONDS_) $(ARGS)

docs: $(EXTRAS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

wheel: build
	$(BIN)/python -m build --wheel --no-isolation --outdir dist .

clean:
	rm -rf $(VENV) dist build src/wasmsand/_image .mypy_cache .pytest_cache .ruff_cache
	find src tests tools bench userland conformance fuzz -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
