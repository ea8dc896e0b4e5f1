# Everything a developer runs, each in its own virtual environment under .venv/.
# `make demo`, `make study`, `make check`, `make test`, `make test-all`, `make bench`,
# `make bench-check`, `make docs`; PYTHON=... picks the interpreter.

PYTHON ?= $(shell command -v python3.11 || echo python3)
VENV   := .venv
# Versions come from constraints.txt, so that everyone tests the same ones. Compiling what is
# never imported would take a minute.
PIP     = -m pip --disable-pip-version-check install -q --no-compile -c constraints.txt
TEST   := $(VENV)/test
TOOLS  := $(TEST)/bin
# Two processes of one thread each beat one of two (DESIGN section 2).
WORKERS ?= 2
# A file goes to one process, which makes its fixtures once; long ones first (conftest.py).
# tests/smoke repeats what others check better; it is for versions that nothing else runs on.
FILES   := --dist loadfile --no-loadscope-reorder --ignore=tests/smoke
export OMP_NUM_THREADS ?= 1
# Without its bytecode kept, every process that a test begins compiles all it imports anew.
unexport PYTHONDONTWRITEBYTECODE

# Hypothesis profile of `make test`: few examples per property test; `make test-all` runs more.
EXAMPLES ?= quick
COVERAGE ?=

.PHONY: demo study check test test-slow test-all test-minimal test-peers test-lowest test-smoke lint properties docs links clean
.PHONY: pages bench bench-check bench-install release
.DEFAULT_GOAL := test

# A newcomer's first look: a plain install (not editable) of what the demo needs, then the demo.
# torch is named with its version: an open "torch" could fetch another build. `make demo
# DEMO=--small` only shows that everything works; `make study` trains longer.
study: DEMO = --study
study: demo
demo:
	$(PYTHON) -m venv --clear $(VENV)/demo
	$(VENV)/demo/bin/python $(PIP) torch==2.13.0 '.[fast]' ./bench
	$(VENV)/demo/bin/python -m examples.demo $(DEMO)

# Made anew whenever the dependencies change.
$(TEST)/.installed: pyproject.toml bench/pyproject.toml constraints.txt hatch_build.py
	$(PYTHON) -m venv --clear $(TEST)
	$(TOOLS)/python $(PIP) torch==2.13.0 -e '.[all,test]' -e ./bench
	touch $@

# For every commit: architecture tests, property tests, conformance, layers, lint and types. The
# property tests of other array libraries, gradients and estimators are excluded: they take longer
# than all other tests together.
SLOW_PROPERTIES := $(addprefix --ignore=tests/properties/test_,backends.py gradients.py estimators.py)
check: $(TEST)/.installed
	$(MAKE) --no-print-directory -j2 --output-sync=target properties lint

properties: $(TEST)/.installed
	HYPOTHESIS_PROFILE=few \
	$(TOOLS)/python -m pytest -q -m "not slow" $(SLOW_PROPERTIES) tests/architecture tests/properties tests/references

# What a change must pass: all tests but those marked as slow, then the checks.
test: $(TEST)/.installed
	HYPOTHESIS_PROFILE=$(EXAMPLES) \
	$(TOOLS)/python -m pytest -n $(WORKERS) $(FILES) -m "not slow" --durations=20 $(COVERAGE)
	$(MAKE) --no-print-directory lint

# Simulations, runs that are killed, whole benchmarks: what takes more than a few seconds.
# Only the files that have the word are read: the others take as long to import as some tests take.
SLOW_FILES = $(shell grep -rlw slow tests bench/tests --include='test_*.py')
test-slow: $(TEST)/.installed
	$(TOOLS)/python -m pytest -n $(WORKERS) $(FILES) -m slow --durations=20 $(SLOW_FILES)

# Everything, for CI: more examples per property test, every branch counted, the base install.
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

# The base install only: nothing but the tests of the extras may be skipped or break.
# A module of an absent extra cannot be imported, so neither can its doctests.
# The long simulations and most examples of Hypothesis would find nothing here that `test` has not:
# compiled and NumPy paths are held to the same numbers there. The architecture tests are about the
# text of the source, which is the same.
$(VENV)/minimal/.installed: pyproject.toml constraints.txt hatch_build.py
	$(PYTHON) -m venv --clear $(VENV)/minimal
	$(VENV)/minimal/bin/python $(PIP) -e '.[test-minimal]'
	touch $@

# Tests of the source's text, and of pages about both packages.
OF_TEXT := $(addprefix --ignore=tests/architecture/test_,$(addsuffix .py,arguments citations dependencies \
	docstrings layers repository rules sizes)) \
	$(addprefix --ignore=tests/docs/test_,$(addsuffix .py,advice generated metric_statements pages))
test-minimal: $(VENV)/minimal/.installed
	HYPOTHESIS_PROFILE=quick \
	$(VENV)/minimal/bin/python -m pytest tests src -n $(WORKERS) $(FILES) $(OF_TEXT) -m "not slow" \
		--doctest-ignore-import-errors

# The comparisons with other packages, in an environment of their own: they need older versions of some
# libraries than the other tests. Here a package that is missing is an error.
$(VENV)/peers/.installed: pyproject.toml constraints-peers.txt hatch_build.py
	$(PYTHON) -m venv --clear $(VENV)/peers
	$(VENV)/peers/bin/python -m pip --disable-pip-version-check install -q --no-compile \
		-c constraints-peers.txt torch==2.13.0 -e '.[fast,torch,test-minimal,peers]'
	touch $@

PEER_FILES = $(shell grep -rl pytest.mark.peers tests --include='test_*.py')
test-peers: $(VENV)/peers/.installed
	ABSTAIN_REQUIRE_PEERS=1 $(VENV)/peers/bin/python -m pytest -q -m peers $(PEER_FILES)

# The lowest versions that both pyproject.toml declare, on the lowest Python; what only they ask for
# is the newest. Old libraries use what new ones deprecate: that is no error here.
$(VENV)/lowest/.installed: pyproject.toml bench/pyproject.toml tools/lowest.py
	$(PYTHON) -m venv --clear $(VENV)/lowest
	$(PYTHON) tools/lowest.py > $(VENV)/lowest/constraints.txt
	$(VENV)/lowest/bin/python -m pip --disable-pip-version-check install -q --no-compile \
		-c $(VENV)/lowest/constraints.txt -e '.[fast,scale,test-minimal]'
	$(VENV)/lowest/bin/python $(PIP) --no-deps -e ./bench
	touch $@

test-lowest: $(VENV)/lowest/.installed
	$(VENV)/lowest/bin/python -m pytest -W ignore::DeprecationWarning tests/smoke tests/foundation/test_records.py

# The same tests with the newest versions on another Python: `make test-smoke PYTHON=python3.13`.
test-smoke:
	$(PYTHON) -m venv --clear $(VENV)/smoke
	$(VENV)/smoke/bin/python -m pip --disable-pip-version-check install -q --no-compile \
		-e '.[fast,test-minimal]'
	$(VENV)/smoke/bin/python $(PIP) --no-deps -e ./bench
	$(VENV)/smoke/bin/python -m pytest -W ignore::DeprecationWarning tests/smoke

# Three reports in Chromium at three widths, light and dark: console, requests, accessibility, and
# their height, nodes, size and renderer time. Needs npm and Chromium (Debian: `apt-get install chromium`).
PAGES      := $(VENV)/pages
pages: $(TEST)/.installed
	$(TOOLS)/python tools/example_pages.py $(PAGES)
	cd $(PAGES) && npm install --no-save --silent axe-core@4 puppeteer-core@24
	cd $(PAGES) && node $(CURDIR)/tools/pages.mjs --limits $(PAGE_LIMITS) evaluation.html comparison.html rule.html
PAGE_LIMITS ?= height=5000,nodes=15000,kilobytes=900

# Measure every case, some 10 minutes of two quiet cores: docs/performance.md and
# benchmarks/cases.json. `make bench BENCH='--only "peers*"'` measures a part of it.
BENCH ?=
$(VENV)/bench/.installed: pyproject.toml bench/pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear $(VENV)/bench
	$(VENV)/bench/bin/python $(PIP) torch==2.13.0 '.[fast,bench]' ./bench
	touch $@

# The package as it is now; what it needs is there.
bench-install: $(VENV)/bench/.installed
	$(VENV)/bench/bin/python $(PIP) --no-deps --force-reinstall . ./bench

bench: bench-install
	$(VENV)/bench/bin/python benchmarks/run.py $(BENCH)

# Is a case 20% slower than the table says? Some 3 minutes; the exit status is then 1.
bench-check: bench-install
	$(VENV)/bench/bin/python benchmarks/run.py --against $(BENCH)

$(VENV)/docs/.installed: pyproject.toml bench/pyproject.toml constraints.txt hatch_build.py
	$(PYTHON) -m venv --clear $(VENV)/docs
	$(VENV)/docs/bin/python $(PIP) -e '.[docs]'
	$(VENV)/docs/bin/python $(PIP) --no-deps -e ./bench
	touch $@

docs: $(VENV)/docs/.installed
	$(VENV)/docs/bin/python -m sphinx -W --keep-going -b html docs docs/_build/html

# Every address that the pages name, asked for: needs a network. What needs none is in
# tests/docs/test_links.py.
links: $(VENV)/docs/.installed
	$(VENV)/docs/bin/python -m sphinx -q -b linkcheck docs docs/_build/links

# Wheel and sdist of the last commit, each installed from scratch: docs/releasing.md.
release:
	$(PYTHON) tools/release.py

clean:
	rm -rf $(VENV) build dist docs/_build docs/generated docs/reference docs/metrics
