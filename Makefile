# wasmsand's commands. `make` alone explains them.
#
# Everything runs in a private virtual environment (.venv), made at first use. Choose
# another Python with `make PYTHON=python3.13 ...`.

.DEFAULT_GOAL := help
.PHONY: v86 help demo test tests-ready lint check build packages packages-if-cached v86-if-possible compiled-kernel compiled-test bench conformance fuzz soak docs wheel playground-page web web-test clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed
DEV := $(VENV)/installed-dev
EXTRAS := $(VENV)/installed-extras
WEB_STAMP := web/node_modules/installed

# Our own directories that mypy checks, if they exist.
TYPED := $(wildcard src scripts bench userland conformance fuzz tests)
PYTEST := $(BIN)/python -m pytest
# The recipes that `make demo` builds; the others take longer.
DEMO := bash coreutils grep sed gawk findutils diffutils python
# Further arguments for pytest: make test ARGS='-k fork -x'
ARGS ?=
# Seconds of fuzzing for all targets together: in `make fuzz`, and in `make test`.
SECONDS_ ?= 600
TEST_SECONDS := 60
# Length of `make soak`.
MINUTES ?= 10
# What runs with the compiled kernel too.
COMPILED_PYTEST = WASMSAND_COMPILED_KERNEL=always $(PYTEST) -o cache_dir=build/compiled-tests \
    tests/engine tests/kernel tests/abi tests/compiled_kernel tests/programs
# The processes of pytest. Tests wait for programs, servers and clocks for a part of their time, so
# one more than there are CPUs.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# Hundreds of tests watch processes, clocks and terminals of a machine that others use too. A
# failure counts only if the test fails again when it runs alone; both failures are printed.
# build/flaky-tests.md lists the tests that passed only at the second try. They must be fixed.
ONCE_MORE := make: some tests failed (above); they run once more, one at a time

help:
	@echo 'wasmsand: a computer for AI agents in a Python package'
	@echo
	@echo '  make demo          build the shell, core tools and Python, run some commands, print timings'
	@echo '  make test          build everything, run every check and every test'
	@echo
	@echo '  make check         ruff, mypy --strict, import layers, unit tests: under a minute, no build'
	@echo '  make build         build the whole user space from source; cached'
	@echo '  make packages      build the second stage too: Python with numpy, pandas, scipy, ...; takes long'
	@echo '  make v86           build the Linux machine of v86 mode'
	@echo '  make compiled-kernel  compile the kernel of this checkout with mypyc; cached'
	@echo '  make bench         measure all timings beside native programs and other sandboxes, renew the tables'
	@echo "  make conformance   run the programs' own test suites, in the sandbox and natively"
	@echo '  make fuzz          fuzz every interface for SECONDS_=600 seconds; ARGS names targets'
	@echo '  make soak          run commands for MINUTES=10 minutes while workers die, the disk fills and clients vanish'
	@echo '  make docs          build the documentation site in build/site; fail on a broken link'
	@echo '  make wheel         build dist/*.whl: the programs, portable and compiled for this kind of machine'
	@echo '  make web           build the npm package and the playground in web/; needs npm and a built user space'
	@echo '  make web-test      test the package under Node 24, in Chromium, and in Firefox if it is there'
	@echo '  make clean         remove generated files (not the build cache: wasmsand build --clean)'
	@echo
	@echo 'Then: .venv/bin/wasmsand --help'

$(STAMP): pyproject.toml scripts/make_venv
	@scripts/make_venv "$(PYTHON)" "$(VENV)" $(BUILDS)
	@touch $@

# The recipes that a target builds: their Debian packages are installed while pip works.
demo: BUILDS := $(DEMO)
build test: BUILDS := all

# Tools for development, among them half a gigabyte of compilers that only tests use.
$(DEV): $(STAMP)
	@echo 'make: installing the tools for development'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

# Packages that only tests and the site need: agent frameworks, Ray, mkdocs.
$(EXTRAS): $(STAMP)
	@echo 'make: installing the tools for development, the supported agent frameworks, Ray, and mkdocs'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,adapters,docs,fleet]'
	@touch $(DEV) $@

demo: $(STAMP)
	$(BIN)/wasmsand build $(DEMO)
	$(BIN)/wasmsand doctor
	@scripts/demo $(BIN)/wasmsand

build: $(STAMP)
	$(BIN)/wasmsand build
	$(BIN)/wasmsand doctor

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(TYPED)
	$(BIN)/python scripts/check_layers.py
	$(BIN)/python scripts/make_async.py --check
	$(BIN)/python scripts/option_table.py --check

check: lint
	$(PYTEST) -q -n auto -m 'not userland' $(ARGS)

packages: $(STAMP)
	$(BIN)/wasmsand build python-full

# The second stage takes long to build, so its tests run only where it was built before.
packages-if-cached: build
	$(BIN)/wasmsand build --if-cached python-full

v86: $(STAMP)
	$(BIN)/wasmsand build v86

# Where it cannot be built (no npm, no Debian), its tests are skipped.
v86-if-possible: packages-if-cached
	$(BIN)/wasmsand build v86 || echo 'make: the tests of v86 mode are skipped: it could not be built'

# What the tests run, and fuzzing.
tests-ready: v86-if-possible
	$(BIN)/python -m tests.differential
	$(BIN)/python -m fuzz --seconds $(TEST_SECONDS)

# The checks of the code use one CPU, and need nothing that is built.
test: $(EXTRAS)
	@$(MAKE) --no-print-directory -j2 lint tests-ready
	$(PYTEST) -p tests.second_try -n $(WORKERS) --durations=25 $(ARGS) || { [ $$? -eq 1 ] && echo '$(ONCE_MORE)' && \
	    $(PYTEST) -p tests.second_try --second-try \
	        --last-failed --last-failed-no-failures none $(ARGS); }
	@$(MAKE) --no-print-directory compiled-test
	@scripts/web_tests

# Two minutes of CPU time, once for the same sources. `make wheel` does it too.
compiled-kernel: $(DEV)
	$(BIN)/python scripts/compile_kernel.py

# The tests that attack system calls or run many programs, with the compiled kernel. Where it cannot
# be compiled (no compiler, no headers of Python), they are skipped.
compiled-test: $(DEV)
	@$(BIN)/python scripts/compile_kernel.py || { [ $$? -eq 3 ] && \
	    echo 'make: the tests of the compiled kernel are skipped' && exit 0; exit 1; } && \
	{ $(COMPILED_PYTEST) -n $(WORKERS) || { [ $$? -eq 1 ] && echo '$(ONCE_MORE)' && \
	    $(COMPILED_PYTEST) --last-failed --last-failed-no-failures none; }; }

bench: $(DEV) build compiled-kernel
	$(BIN)/python -m bench.renew $(ARGS)

conformance: $(DEV) build
	$(BIN)/python -m conformance $(ARGS)

fuzz: $(DEV)
	$(BIN)/python -m fuzz --seconds $(SECONDS_) $(ARGS)

soak: $(DEV) build
	$(BIN)/python -m bench.soak_faults --minutes $(MINUTES) $(ARGS)

docs: $(EXTRAS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# The page of `wasmsand serve --playground`, without programs.
playground-page: $(WEB_STAMP)
	cd web && npm run --silent site -- --front-end

wheel: $(DEV) build
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory playground-page; \
	    else echo 'make: no npm: the wheel will have no page for `wasmsand serve --playground`'; fi
	$(BIN)/python scripts/make_wheels.py

$(WEB_STAMP): web/package.json web/package-lock.json
	@command -v npm >/dev/null || { echo 'make: web needs npm (Node 20 or newer)'; exit 1; }
	cd web && npm ci --no-fund --no-audit
	@touch $@

web: $(DEV) build $(WEB_STAMP)
	cd web && npm run --silent assets && npm run --silent build && npm run --silent site
	@echo 'make: the playground is in web/site; $(BIN)/wasmsand playground serves it'

# Chromium is installed with apt-get if it is missing; if that fails, its tests are skipped.
web-test: $(DEV) build
	@scripts/web_tests

clean:
	rm -rf $(VENV) dist build web/dist web/assets web/site web/node_modules src/wasmsand/_playground src/wasmsand/_image src/wasmsand_packages/_image src/wasmsand/_v86 src/wasmsand/_compiled .mypy_cache .pytest_cache .ruff_cache
	find src tests scripts bench userland conformance fuzz -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
