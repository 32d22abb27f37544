# Everything a newcomer needs, on a machine with Python >= 3.11, git and make:
#   make test        environment, lint, types, tests and doctests
#   make reproduce   environment, then the paper's experiments: one page, report/index.html
#                    (SHORT=1: a minute; FULL=1: the paper's full scale; COLON=path: the real data)
#   make oldest      the tests with the oldest releases that pyproject.toml allows, in .venv-oldest
#   make mutants     which deliberate errors in the mathematics the tests notice
#                    (MUTANTS_ARGS='-j 2 --file projections'; '--random 20 --seed 1 --file cones': at random)
#   make deadline    limits and interrupts with a real clock, one test at a time
#   make fuzz        random calls, judged independently (N=10000 calls, SEED=, MINUTES=; exit status 1
#                    on a wrong claim, a crash or a missed deadline; reproducers in fuzz-failures/)
#   make traces      write the recorded behaviour in tests/traces/reference again (TRACES_ARGS='--only bpdn')
#   make coverage    the tests with coverage: htmlcov/index.html, coverage.xml, coverage.svg
#   make package     wheel and sdist in dist/, the wheel tried in an empty environment, the sdist's tests run
#   make track       measure a few ratios to other solvers, append them to benchmarks/results/track.json
#   make bench       timings and operation counts (benchmarks/bench_*.py)
#   make figures     convergence figures (benchmarks/figure_*.py)
#   make docs        the documentation with its gallery, into docs/_build/html
#   make format      let ruff rewrite what it can
#   make clean       remove the environment and every cache

PYTHON ?= python3
VENV ?= .venv
# Worker processes of pytest; extra arguments, e.g. PYTEST_ARGS='-k lopgd -x'.
JOBS ?= auto
PYTEST_ARGS ?=
# Of `make reproduce`: see the first lines; extra arguments, e.g. REPRODUCE_ARGS='rates --fresh'.
SHORT ?=
FULL ?=
COLON ?=
REPRODUCE_ARGS ?=
# Of `make mutants`, see its --help.
MUTANTS_ARGS ?=

# Of `make fuzz`: how many calls (1000), which ones (at random), for how many minutes at most.
N ?=
SEED ?=
MINUTES ?=
FUZZ_ARGS ?=
# Of `make traces`.
TRACES_ARGS ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

# Small matrices and many worker processes: one thread of linear algebra each.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1
# Figures are written to files, never to a screen.
export MPLBACKEND ?= Agg

.DEFAULT_GOAL := help
.PHONY: help venv lint types check deadline test oldest mutants fuzz traces reproduce coverage package track \
	bench figures docs format clean
.DELETE_ON_ERROR:

help:
	@sed -n 's/^#   //p' Makefile

# One stamp per set of requirements; a change of pyproject.toml installs again. The package itself
# is installed in place, so a change of the source needs no new installation.
$(BIN)/python:
	@echo "== creating $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "lopro needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	@echo "== installing lopro[$*] into $(VENV)"
	@$(PIP) install -qq --editable ".[$*]"
	@touch $@

DEV := $(VENV)/.installed-dev
EXAMPLES := $(VENV)/.installed-examples
BENCH := $(VENV)/.installed-bench
DOCS := $(VENV)/.installed-docs

venv: $(DEV)

lint: $(DEV)
	@echo "== ruff check"
	@$(BIN)/ruff check .
	@echo "== ruff format --check"
	@$(BIN)/ruff format --check .
	@echo "== workflows"
	@$(BIN)/check-jsonschema -q --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@$(BIN)/check-jsonschema -q --builtin-schema vendor.dependabot .github/dependabot.yml
	@$(BIN)/check-jsonschema -q --builtin-schema vendor.readthedocs .readthedocs.yaml
	@$(BIN)/check-jsonschema -q --builtin-schema vendor.citation-file-format CITATION.cff

types: $(DEV)
	@echo "== mypy"
	@$(BIN)/mypy

check: $(DEV)
	@echo "== pytest"
	$(BIN)/python -m pytest -n $(JOBS) $(PYTEST_ARGS)

# These measure time, so they have the machine to themselves.
deadline: $(DEV)
	$(BIN)/python -m pytest -m serial tests/deadline $(PYTEST_ARGS)

test: lint types check

# Formatters and type checkers speak of their newest releases only.
oldest: .ci/oldest.py pyproject.toml
	@echo "== pytest with the oldest releases"
	@test -x .venv-oldest/bin/python || $(PYTHON) -m venv .venv-oldest
	@.venv-oldest/bin/python .ci/oldest.py > .venv-oldest/constraints.txt
	@.venv-oldest/bin/python -m pip --disable-pip-version-check install -qq -e ".[dev]" \
		-c .venv-oldest/constraints.txt
	.venv-oldest/bin/python -m pytest -n $(JOBS) $(PYTEST_ARGS)

# In copies of the sources: the checkout stays as it is.
mutants: $(DEV)
	@echo "== mutants"
	@PYTHONPATH=tests $(BIN)/python -m mutants $(MUTANTS_ARGS)

fuzz: $(DEV)
	@echo "== fuzzer"
	PYTHONPATH=src:tests $(BIN)/python -m fuzz $(if $(N),--count $(N)) $(if $(SEED),--seed $(SEED)) \
		$(if $(MINUTES),--minutes $(MINUTES)) $(FUZZ_ARGS)

# With several kernels of the linear algebra: kept is what they agree on.
traces: $(DEV)
	@echo "== traces"
	PYTHONPATH=src:tests $(BIN)/python -m traces reference $(TRACES_ARGS)

# Parts that are finished are kept in report/parts: interrupted, it goes on where it stopped.
reproduce: $(EXAMPLES)
	@echo "== the main job"
	$(BIN)/python -m lopro reproduce $(if $(SHORT),--short) $(if $(FULL),--full) \
		$(if $(COLON),--colon "$(COLON)") $(REPRODUCE_ARGS)

coverage: $(DEV)
	@echo "== coverage"
	$(BIN)/python -m pytest -n $(JOBS) --cov --cov-report=term --cov-report=html --cov-report=xml $(PYTEST_ARGS)
	@$(BIN)/python .ci/badge.py coverage.xml coverage.svg

# The wheel is tried without optional packages; the tests of the sdist run in the environment of the checkout.
package: $(DEV)
	@echo "== wheel and sdist"
	@rm -rf dist build/wheel build/sdist
	@$(BIN)/python -m build --outdir dist . > /dev/null
	@echo "== the wheel, in an empty environment"
	@$(PYTHON) -m venv build/wheel
	@build/wheel/bin/python -m pip --disable-pip-version-check install -qq dist/*.whl
	@cd build && wheel/bin/python ../.ci/smoke.py
	@echo "== the wheel without PIQP and Clarabel"
	@build/wheel/bin/python -m pip --disable-pip-version-check uninstall -qq --yes piqp clarabel
	@cd build && wheel/bin/python ../.ci/smoke.py
	@echo "== the tests of the sdist"
	@mkdir -p build/sdist && tar -xzf dist/*.tar.gz --strip-components 1 -C build/sdist
	@cd build/sdist && $(abspath $(BIN))/python -m pytest -n $(JOBS) $(PYTEST_ARGS)

track: $(BENCH)
	@$(BIN)/python -m benchmarks.track

bench: $(BENCH)
	@for script in benchmarks/bench_*.py; do \
		test -e "$$script" || { echo "no benchmarks/bench_*.py"; exit 1; }; \
		echo "== $$script"; $(BIN)/python "$$script" || exit 1; \
	done

figures: $(BENCH)
	@for script in benchmarks/figure_*.py; do \
		test -e "$$script" || { echo "no benchmarks/figure_*.py"; exit 1; }; \
		echo "== $$script"; $(BIN)/python "$$script" || exit 1; \
	done

# Warnings are errors; the examples of the gallery run in the build.
docs: $(DOCS)
	@echo "== documentation"
	@$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

format: $(DEV)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .venv-oldest build dist .mypy_cache .pytest_cache .ruff_cache .coverage* coverage.* htmlcov
	rm -rf docs/_build docs/_generated docs/auto_examples docs/sg_execution_times.rst
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
