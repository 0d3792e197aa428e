# One command each; every target makes the virtual environment it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest --numprocesses 2 --dist worksteal --durations 20 --durations-min 0.5

.PHONY: demo demo-service test exhaust check soak bench clean help

help:
	@echo "make demo         run the main job on a real survey; the report is demo-report/report.html"
	@echo "make demo-service run the collection service: real servers, 500 devices, ten rounds; KEEP=--keep holds the page"
	@echo "make test         run the tests, at most ten minutes of processor time; ORDER=7 draws an order of them"
	@echo "make exhaust      run the long tests, before a release; SHARD=3/8 runs the third eighth of them"
	@echo "make check        formatting, lint, types, layers"
	@echo "make soak         kill the service's processes 200 times on each database; nothing may be lost or doubled"
	@echo "make bench        speed and accuracy beside naive versions, peers and a yardstick"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Dovetail needs Python 3.11 or newer.")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo.stamp: pyproject.toml device/pyproject.toml | $(BIN)/python
	$(PIP) --editable ./device --editable '.[demo]'
	@touch $@

$(VENV)/serve.stamp: pyproject.toml device/pyproject.toml | $(BIN)/python
	$(PIP) --editable ./device --editable '.[serve]'
	@touch $@

$(VENV)/test.stamp: pyproject.toml device/pyproject.toml | $(BIN)/python
	$(PIP) --editable './device[mqtt]' --editable '.[demo,test,check]'
	@touch $@

demo: $(VENV)/demo.stamp
	$(BIN)/dovetail demo --out demo-report --force

demo-service: $(VENV)/serve.stamp
	$(BIN)/dovetail collect demo $(KEEP)

test: $(VENV)/test.stamp
	$(PYTEST) -m "not exhaust" $(if $(ORDER),--order $(ORDER))

exhaust: $(VENV)/test.stamp
	$(PYTEST) -m exhaust $(if $(SHARD),--shard $(SHARD))

check: $(VENV)/test.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_architecture.py

soak: $(VENV)/test.stamp
	$(BIN)/python -m tests.collect.soak --kills 200
	$(BIN)/python -m tests.collect.soak --kills 200 --postgresql

bench: $(VENV)/test.stamp
	$(PIP) --editable ./device --editable '.[bench]' || echo 'peers could not be installed; they are skipped'
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) demo-report build dist .mypy_cache .pytest_cache .ruff_cache
