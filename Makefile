# Everything runs in .venv, which is made with the versions of constraints.txt on first use and
# brought up to date when they or pyproject.toml change.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PINS := pyproject.toml constraints.txt
# Compiling is most of the work of the tests. A file's tests share what they compile, so they stay
# in one process.
JOBS ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all test-rounding lint bench docs clean

help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.stamp-run ## Install the package

# Goes on where it was interrupted; a finished one is only shown again.
demo: $(VENV)/.stamp-run ## The paper's network, a baseline and a law on every system; demo/report.html
	$(BIN)/mbdnode reproduce --quick --jobs $(JOBS) --out demo $(if $(wildcard demo/plan.json),--resume)

test: $(VENV)/.stamp-test ## Run the tests
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not slow" $(PYTEST)

# What takes long for a reason, compiled as users compile it.
test-all: $(VENV)/.stamp-test test-rounding ## Run the slow tests, which `make test` leaves out
	JAX_DISABLE_MOST_OPTIMIZATIONS=0 $(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m slow $(PYTEST)

# As older processors round: without fused multiply-add and with other BLAS kernels, then with both
# as they were before AVX-512. What was compiled for one must not be taken for the other.
NUMERICAL := tests/multibody tests/integrators tests/simulation tests/control tests/evaluation
OTHER_ROUNDING = JAX_ENABLE_COMPILATION_CACHE=false XLA_FLAGS=--xla_cpu_max_isa=$(1) \
	OPENBLAS_CORETYPE=$(2) $(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not slow" $(NUMERICAL)
test-rounding: $(VENV)/.stamp-test ## Run the numerical tests with the rounding of other processors
	$(call OTHER_ROUNDING,SSE4_2,Nehalem)
	$(call OTHER_ROUNDING,AVX2,Haswell)

lint: $(VENV)/.stamp-dev ## Check style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo

bench: $(VENV)/.stamp-bench ## Measure speed, beside SciPy, MuJoCo and PyTorch (ONLY=name for one)
	$(BIN)/python -m benchmarks.run $(ONLY)

docs: $(VENV)/.stamp-docs ## Build the documentation; site/index.html, which needs no network
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@! grep -rnE --include=*.html '<(script|link|img|iframe)[^>]*(src|href)="?(https?:)?//' site || \
		{ echo "error: these pages would load something from a network"; exit 1; }

clean: ## Remove the environment, figures and caches
	rm -rf $(VENV) demo dist site .pytest_cache .ruff_cache .import_linter_cache
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error: $$($(PYTHON) --version) is too old; mbdnode needs Python 3.11 or newer. Name one with make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.stamp-run: $(PINS) | $(BIN)/python
	@echo "Installing into $(VENV)"
	@$(PIP) install --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.stamp-test: $(VENV)/.stamp-run
	@echo "Installing what the tests need"
	@$(PIP) install --constraint constraints.txt --editable '.[test]'
	@touch $@

$(VENV)/.stamp-bench: $(VENV)/.stamp-test
	@echo "Installing what is measured beside us"
	@$(PIP) install --constraint constraints.txt --editable '.[bench]'
	@touch $@

$(VENV)/.stamp-dev: $(VENV)/.stamp-test
	@echo "Installing the checkers"
	@$(PIP) install --constraint constraints.txt --editable '.[dev]'
	@touch $@

$(VENV)/.stamp-docs: $(VENV)/.stamp-run
	@echo "Installing what builds the documentation"
	@$(PIP) install --constraint constraints.txt --editable '.[docs]'
	@touch $@
