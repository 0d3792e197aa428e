# One command each; every target makes the virtual environment it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PYTHONDONTWRITEBYTECODE :=  # the tests start hundreds of processes, each of which would compile everything again
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Libraries come from the layers of lock/, each with its hash; what is in this repository is installed from here.
# Python compiles what it imports; everything would take as long as the installation itself.
LOCKED := $(PIP) --no-deps --no-compile --require-hashes --requirement
OURS := $(PIP) --no-deps --no-build-isolation --editable ./device --editable .
MORE ?= test# MORE=spark installs Spark as well, whose tests are skipped otherwise
PYTEST := $(BIN)/python -m pytest --numprocesses 2 --dist worksteal --durations 20 --durations-min 0.5

.PHONY: demo demo-service docs test exhaust elsewhere packages lock newest oldest release-check check typescript mutants soak bench clean help

help:
	@echo "make demo         run the main job on a real survey; the report is demo-report/report.html"
	@echo "make demo-service run the collection service: real servers, 500 devices, ten rounds; KEEP=--keep holds the page"
	@echo "make test         run the tests, a few minutes of processor time; ORDER=7 draws an order of them"
	@echo "make exhaust      run the long tests, before a release; SHARD=3/8 runs the third eighth of them"
	@echo "make elsewhere    run some tests without network, in another time zone and language, in a home nobody can write"
	@echo "make packages     build both distributions, install them in clean environments, run them; VERSIONS=3.13"
	@echo "make lock         write lock/ anew: the versions, with hashes, that every target installs"
	@echo "make newest       run the tests with the newest libraries there are; make oldest: the oldest allowed ones"
	@echo "make release-check everything above and below, other Pythons and the oldest libraries; takes hours"
	@echo "make docs         build the site: site/index.html; examples run, a warning is an error"
	@echo "make check        formatting, lint, types, layers"
	@echo "make typescript   build clients/typescript and run its own tests; takes Node 20 and npm"
	@echo "make mutants      change a line at a time: the tests named in tests/mutants must notice; before a release"
	@echo "make soak         kill the service 200 times on each database and with a broker, while keys change: nothing lost or doubled"
	@echo "make bench        speed and accuracy beside naive versions, peers and a yardstick"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Dovetail needs Python 3.11 or newer.")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo.stamp: pyproject.toml device/pyproject.toml lock/demo.txt | $(BIN)/python
	$(LOCKED) lock/demo.txt
	$(OURS)
	@touch $@

$(VENV)/serve.stamp: lock/serve.txt $(VENV)/demo.stamp
	$(LOCKED) lock/serve.txt
	@touch $@

$(VENV)/test.stamp: lock/test.txt $(VENV)/serve.stamp
	$(LOCKED) lock/test.txt
	@touch $@

$(VENV)/spark.stamp: lock/spark.txt $(VENV)/test.stamp
	$(LOCKED) lock/spark.txt
	@touch $@

demo: $(VENV)/demo.stamp
	$(BIN)/dovetail demo --out demo-report --force

demo-service: $(VENV)/serve.stamp
	$(BIN)/dovetail collect demo $(KEEP)

test: $(VENV)/$(MORE).stamp
	$(PYTEST) -m "not exhaust" $(if $(ORDER),--order $(ORDER))

exhaust: $(VENV)/$(MORE).stamp
	$(PYTEST) -m exhaust $(if $(SHARD),--shard $(SHARD))
	$(if $(wildcard tests/mutants/__main__.py),$(BIN)/python -m tests.mutants $(if $(SHARD),--shard $(SHARD)))

# a few tests of what touches files, times, words and the network; all of them: make elsewhere TIER=
TIER := tests/cli/test_cli.py tests/collect/device tests/datasets tests/job/test_ledger.py \
	tests/job/test_publish.py tests/report
elsewhere: $(VENV)/$(MORE).stamp
	.ci/elsewhere $(PYTEST) -m "not exhaust" $(TIER)

packages: $(VENV)/test.stamp
	$(BIN)/python -m tests.packaging $(if $(VERSIONS),--python $(VERSIONS))

$(VENV)/release.stamp: $(VENV)/test.stamp
	$(PIP) --editable ./device --editable '.[release]'
	@touch $@

lock: $(VENV)/release.stamp
	$(BIN)/python -m tests.packaging.lock

newest oldest: $(VENV)/release.stamp
	$(BIN)/python -m tests.packaging.versions $(if $(filter oldest,$@),--lowest)

release-check: export DOVETAIL_EXPLORE = 1  # new random examples, not those of every run
release-check: check test exhaust packages $(VENV)/release.stamp
	$(MAKE) elsewhere TIER=
	$(MAKE) newest oldest
	$(MAKE) soak
	$(BIN)/python benchmarks/first_answer.py --strict

$(VENV)/docs.stamp: lock/docs.txt $(VENV)/test.stamp
	$(LOCKED) lock/docs.txt
	@touch $@

docs: $(VENV)/docs.stamp
	$(BIN)/python -m sphinx -b html -E -W --keep-going -q docs site
	@rm -rf jupyter_execute
	$(BIN)/python -m tests.site site

CLIENT := clients/typescript
$(CLIENT)/dist/index.js: $(CLIENT)/package-lock.json $(CLIENT)/tsconfig.json $(wildcard $(CLIENT)/src/*.ts)
	cd $(CLIENT) && npm ci --no-audit --no-fund --silent && npm run --silent build
	@touch $@

typescript: $(CLIENT)/dist/index.js
	cd $(CLIENT) && npm run --silent size && npm test --silent

check: $(VENV)/$(MORE).stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_architecture.py

mutants: $(VENV)/test.stamp
	$(BIN)/python -m tests.mutants

soak: $(VENV)/test.stamp
	$(BIN)/python -m tests.collect.soak --kills 200 --rotations 3
	$(BIN)/python -m tests.collect.soak --kills 200 --rotations 3 --postgresql
	$(BIN)/python -m tests.collect.soak --kills 200 --processes 4 --postgresql
	$(BIN)/python -m tests.collect.soak --kills 200 --rotations 3 --mqtt
	$(BIN)/python -m tests.collect.soak --kills 100 --tokens
	$(BIN)/python -m tests.collect.soak --kills 100 --tokens --postgresql
	$(BIN)/python -m tests.collect.soak --kills 100 --tokens --only shuffler
	$(BIN)/python -m tests.collect.soak --kills 100 --tokens --only shuffler --postgresql

bench: $(VENV)/test.stamp
	$(PIP) --editable ./device --editable '.[bench]' || echo 'peers could not be installed; they are skipped'
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) $(CLIENT)/dist $(CLIENT)/node_modules demo-report site build dist .mypy_cache .pytest_cache .ruff_cache
