# Commands for developers. Each command uses its own virtual environment in .venv/.
# The main targets are demo, study, check, test, test-all, bench, bench-check and docs.
# PYTHON=... sets the interpreter.

PYTHON ?= $(shell command -v python3.11 || echo python3)
VENV   := .venv
# constraints.txt fixes the versions, so that everyone tests the same versions. --no-compile saves a
# minute, because most modules are never imported.
PIP     = -m pip --disable-pip-version-check install -q --no-compile -c constraints.txt
TEST   := $(VENV)/test
TOOLS  := $(TEST)/bin
# Two processes with one thread each are faster than one process with two threads (DESIGN section 2).
WORKERS ?= 2
# One process runs all tests of a file, so module fixtures are created once. conftest.py sorts slow
# tests first. tests/smoke is only for the versions that run no other tests.
FILES   := --dist loadfile --no-loadscope-reorder --ignore=tests/smoke
export OMP_NUM_THREADS ?= 1
# Otherwise, every process that a test starts would compile all imported modules again.
unexport PYTHONDONTWRITEBYTECODE

# Hypothesis profile of `make test`. `make test-all` runs more examples per property test.
EXAMPLES ?= quick
COVERAGE ?=

.PHONY: demo study check test test-slow test-all test-minimal test-peers test-lowest test-smoke lint properties docs links clean
.PHONY: pages bench bench-check bench-install release
.DEFAULT_GOAL := test

# Install the package and the dependencies of the demo (not editable), and run the demo.
# The version of torch is fixed, because pip could otherwise install another build. `make demo
# DEMO=--small` only tests the installation. `make study` trains longer.
study: DEMO = --study
study: demo
demo:
	$(PYTHON) -m venv --clear $(VENV)/demo
	$(VENV)/demo/bin/python $(PIP) torch==2.13.0 '.[fast]' ./bench
	$(VENV)/demo/bin/python -m examples.demo $(DEMO)

# Recreate the environment if the dependencies change.
$(TEST)/.installed: pyproject.toml bench/pyproject.toml constraints.txt hatch_build.py
	$(PYTHON) -m venv --clear $(TEST)
	$(TOOLS)/python $(PIP) torch==2.13.0 -e '.[all,test]' -e ./bench
	touch $@

# Run for every commit: architecture tests, property tests, reference values, layers, lint and types.
# The property tests of other array libraries, gradients and estimators are excluded, because they
# take longer than all other tests together.
SLOW_PROPERTIES := $(addprefix --ignore=tests/properties/test_,backends.py gradients.py estimators.py)
check: $(TEST)/.installed
	$(MAKE) --no-print-directory -j2 --output-sync=target properties lint

properties: $(TEST)/.installed
	HYPOTHESIS_PROFILE=few \
	$(TOOLS)/python -m pytest -q -m "not slow" $(SLOW_PROPERTIES) tests/architecture tests/properties tests/references

# Required for every change: all tests that are not marked as slow, then lint.
test: $(TEST)/.installed
	HYPOTHESIS_PROFILE=$(EXAMPLES) \
	$(TOOLS)/python -m pytest -n $(WORKERS) $(FILES) -m "not slow" --durations=20 $(COVERAGE)
	$(MAKE) --no-print-directory lint

# Tests that take more than a few seconds, such as simulations, interrupted runs and benchmarks.
# pytest collects only files that contain the word "slow", because importing all files takes long.
SLOW_FILES = $(shell grep -rlw slow tests bench/tests --include='test_*.py')
test-slow: $(TEST)/.installed
	$(TOOLS)/python -m pytest -n $(WORKERS) $(FILES) -m slow --durations=20 $(SLOW_FILES)

# All tests, for CI: with more examples per property test, branch coverage and the base install.
test-all:
	$(MAKE) --no-print-directory test EXAMPLES=default COVERAGE="--cov --cov-fail-under=97"
	$(MAKE) --no-print-directory test-slow
	$(MAKE) --no-print-directory test-minimal

lint: $(TEST)/.installed
	$(TOOLS)/lint-imports
	cd bench && ../$(TOOLS)/lint-imports
	$(TOOLS)/ruff check
	$(TOOLS)/ruff format --check
	$(TOOLS)/mypy
	cd bench && ../$(TOOLS)/mypy

# Tests with the base install. Only tests of the extras may be skipped.
# The doctests of modules that import a missing extra are ignored.
# `make test` already compares the compiled code with the NumPy code, so slow tests and most Hypothesis
# examples are not repeated here. The architecture tests read the same source files in both.
$(VENV)/minimal/.installed: pyproject.toml constraints.txt hatch_build.py
	$(PYTHON) -m venv --clear $(VENV)/minimal
	$(VENV)/minimal/bin/python $(PIP) -e '.[test-minimal]'
	touch $@

# Tests that only read source files, and tests of pages about both packages.
SOURCE_TESTS := $(addprefix --ignore=tests/architecture/test_,$(addsuffix .py,arguments citations dependencies \
	docstrings layers repository rules sizes)) \
	$(addprefix --ignore=tests/docs/test_,$(addsuffix .py,advice generated metric_statements pages))
test-minimal: $(VENV)/minimal/.installed
	HYPOTHESIS_PROFILE=quick \
	$(VENV)/minimal/bin/python -m pytest tests src -n $(WORKERS) $(FILES) $(SOURCE_TESTS) -m "not slow" \
		--doctest-ignore-import-errors

# Comparisons with other packages. They have a separate environment, because they need older versions
# of some libraries. A missing package is an error.
$(VENV)/peers/.installed: pyproject.toml constraints-peers.txt hatch_build.py
	$(PYTHON) -m venv --clear $(VENV)/peers
	$(VENV)/peers/bin/python -m pip --disable-pip-version-check install -q --no-compile \
		-c constraints-peers.txt torch==2.13.0 -e '.[fast,torch,test-minimal,peers]'
	touch $@

PEER_FILES = $(shell grep -rl pytest.mark.peers tests --include='test_*.py')
test-peers: $(VENV)/peers/.installed
	ABSTAIN_REQUIRE_PEERS=1 $(VENV)/peers/bin/python -m pytest -q -m peers $(PEER_FILES)

# Tests with the lowest versions that both pyproject.toml files permit. Indirect dependencies have
# their newest versions. Deprecation warnings are ignored, because old libraries use deprecated names.
$(VENV)/lowest/.installed: pyproject.toml bench/pyproject.toml tools/lowest.py
	$(PYTHON) -m venv --clear $(VENV)/lowest
	$(PYTHON) tools/lowest.py > $(VENV)/lowest/constraints.txt
	$(VENV)/lowest/bin/python -m pip --disable-pip-version-check install -q --no-compile \
		-c $(VENV)/lowest/constraints.txt -e '.[fast,scale,test-minimal]'
	$(VENV)/lowest/bin/python $(PIP) --no-deps -e ./bench
	touch $@

test-lowest: $(VENV)/lowest/.installed
	$(VENV)/lowest/bin/python -m pytest -W ignore::DeprecationWarning tests/smoke tests/foundation/test_records.py

# The same tests with the newest versions and any Python: `make test-smoke PYTHON=python3.13`.
test-smoke:
	$(PYTHON) -m venv --clear $(VENV)/smoke
	$(VENV)/smoke/bin/python -m pip --disable-pip-version-check install -q --no-compile \
		-e '.[fast,test-minimal]'
	$(VENV)/smoke/bin/python $(PIP) --no-deps -e ./bench
	$(VENV)/smoke/bin/python -m pytest -W ignore::DeprecationWarning tests/smoke

# Check three reports in Chromium at three widths, light and dark: console messages, requests,
# accessibility, height, nodes, size and renderer time. Requires npm and Chromium (Debian:
# `apt-get install chromium`).
PAGES      := $(VENV)/pages
pages: $(TEST)/.installed
	$(TOOLS)/python tools/example_pages.py $(PAGES)
	cd $(PAGES) && npm install --no-save --silent axe-core@4 puppeteer-core@24
	cd $(PAGES) && node $(CURDIR)/tools/pages.mjs --limits $(PAGE_LIMITS) evaluation.html comparison.html rule.html
PAGE_LIMITS ?= height=5000,nodes=15000,kilobytes=900

# Measure all cases and write docs/performance.md and benchmarks/cases.json. This takes about 10
# minutes on two cores without other load. `make bench BENCH='--only "peers*"'` measures some cases.
BENCH ?=
$(VENV)/bench/.installed: pyproject.toml bench/pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear $(VENV)/bench
	$(VENV)/bench/bin/python $(PIP) torch==2.13.0 '.[fast,bench]' ./bench
	touch $@

# Install the current source without its dependencies, which are already installed.
bench-install: $(VENV)/bench/.installed
	$(VENV)/bench/bin/python $(PIP) --no-deps --force-reinstall . ./bench

bench: bench-install
	$(VENV)/bench/bin/python benchmarks/run.py $(BENCH)

# Exit with status 1 if a case is 20% slower than its stored result. This takes about 3 minutes.
bench-check: bench-install
	$(VENV)/bench/bin/python benchmarks/run.py --against $(BENCH)

$(VENV)/docs/.installed: pyproject.toml bench/pyproject.toml constraints.txt hatch_build.py
	$(PYTHON) -m venv --clear $(VENV)/docs
	$(VENV)/docs/bin/python $(PIP) -e '.[docs]'
	$(VENV)/docs/bin/python $(PIP) --no-deps -e ./bench
	touch $@

docs: $(VENV)/docs/.installed
	$(VENV)/docs/bin/python -m sphinx -W --keep-going -b html docs docs/_build/html

# Request every address in the pages, which requires a network. tests/docs/test_links.py checks the
# links without a network.
links: $(VENV)/docs/.installed
	$(VENV)/docs/bin/python -m sphinx -q -b linkcheck docs docs/_build/links

# Build wheel and sdist of the last commit, and install each in a new environment: docs/releasing.md.
release:
	$(PYTHON) tools/release.py

clean:
	rm -rf $(VENV) build dist docs/_build docs/generated docs/reference docs/metrics
