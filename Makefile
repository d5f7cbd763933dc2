# Everything a fresh machine needs: Python 3.10+, pip and make.
#   make demo      everything once, with the simulated controller
#   make test      lint, types, tests (two processes per core; WORKERS=0 for a single one, TEST=a/file.py)
#   make truth     slow tests with a simulated truth: papers, savings, coverage of intervals; more examples
#   make torture   faults of networks, disks, files, clocks and processes (SEED=1 MINUTES=3)
#   make papers    the papers side by side: every protocol on simulated arms, docs/papers
#   make removable each removable room taken out of a copy, and the rest checked (ROOM=papers for one)
#   make servers   mosquitto, prometheus and clients from npm, for tests that skip without them
#   make coverage  the tests again, with the lines and branches that they run
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PACKAGE_FILES := setup.py setup.cfg pyproject.toml package.xml $(shell find config launch resource -type f -not -name '*.pyc')
STAMP := $(VENV)/.ready
# What is checked for spelling and layout: the project's own files, not bags and models beside them.
TEXTS := .github config docs examples launch test tools ur_energy_model $(wildcard *.md *.toml *.py *.cff)
YAML := .github config .pre-commit-config.yaml CITATION.cff
TEST ?= test
# Twice as many processes as cores: half of the time, tests wait for nodes and simulated controllers.
WORKERS ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))
SEED ?= 0
MINUTES ?= 13

NPM_PACKAGES := @foxglove/ws-protocol@0.8.0 ws@8.23.0 node-opcua-client@2.182.2 sparkplug-payload@1.0.3

.PHONY: setup demo test lint types compiled tests truth coverage bench torture papers removable servers docs clean

setup: $(STAMP)

# Without the venv module (Debian packages it apart), virtualenv does the same from PyPI.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))' || \
	  { echo "Python 3.10 to 3.12 is needed: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || { rm -rf $(VENV) && \
	  $(PYTHON) -m pip install -q --target build/virtualenv virtualenv && \
	  PYTHONPATH=build/virtualenv $(PYTHON) -m virtualenv -q $(VENV); }

$(VENV)/.requirements: requirements.txt requirements-dev.txt constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt \
	  -r requirements.txt -r requirements-dev.txt
	@touch $@

# The stamp depends on what is copied into share/; the modules themselves are linked.
$(STAMP): $(VENV)/.requirements $(PACKAGE_FILES)
	$(BIN)/python -m pip install --disable-pip-version-check -q --no-deps --no-build-isolation -e .
	@touch $@

demo: setup
	@$(BIN)/ur_energy demo -o demo_output

# Types are checked beside the tests, which leave a processor idle at times.
test: lint
	@$(MAKE) --no-print-directory -j2 types tests

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell $(TEXTS)
	$(BIN)/yamllint --strict $(YAML)

# With Python 3.11 or newer, for code of 3.10 as well: the last numpy for 3.10 has older types.
types: setup
	@if $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then $(BIN)/mypy; \
	  else echo "types are not checked on Python 3.10: use 3.11 or newer"; fi

# Tests start hundreds of processes: they share compiled modules, even where Python is told to keep none.
unexport PYTHONDONTWRITEBYTECODE
compiled: setup
	$(BIN)/python -m compileall -q -j 0 ur_energy_model

tests: compiled
	$(BIN)/python -m pytest --all-packages -n $(WORKERS) --dist worksteal -m "not truth" $(TEST)

# What make test leaves out, and its property tests with more examples.
truth: compiled
	EXAMPLES_FACTOR=6 $(BIN)/python -m pytest --all-packages -n $(WORKERS) --dist worksteal \
	  -m "truth or examples" $(TEST)

# Processes that tests start are measured too. Fails below the floor in pyproject.toml.
coverage: setup
	rm -rf build/coverage && mkdir -p build/coverage
	$(BIN)/coverage run -m pytest --all-packages -n $(WORKERS) --dist worksteal $(TEST)
	$(BIN)/coverage combine -q
	$(BIN)/coverage html -q -d build/coverage/html
	$(BIN)/coverage report

bench: setup
	$(BIN)/python -m test.benchmarks

# Not a part of make test. Other faults with another SEED; the table names what failed and how to
# repeat it. Without root, faults that need a small disk are skipped and named.
torture: setup
	$(BIN)/python -m test.torture --seed $(SEED) --minutes $(MINUTES)

# Every protocol of the papers on simulated arms: docs/papers. Continues where
# it was stopped; `rm -r build/papers` starts anew.
papers: setup
	$(BIN)/python -m tools.papers build/papers

# Not a part of make test: without each room in turn, and without all of them, the rest has to be green.
removable: setup
	$(BIN)/python -m tools.removable $(ROOM)

# Programs from apt, which needs root, and clients from npm, kept apart in build/npm. Debian starts
# mosquitto and prometheus as services; the tests start their own on free ports.
servers:
	@if [ "$$(id -u)" = 0 ]; then sudo=; else sudo=sudo; fi; set -ex; \
	  $$sudo apt-get install -y --no-install-recommends mosquitto prometheus; \
	  command -v npm > /dev/null || $$sudo apt-get install -y --no-install-recommends nodejs npm
	npm install --prefix build/npm --no-audit --no-fund --no-save $(NPM_PACKAGES)

# Warnings are errors: a broken link or a page in no index fails the build.
$(VENV)/.requirements-docs: requirements-docs.txt constraints.txt $(VENV)/.requirements
	$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt \
	  -r requirements-docs.txt
	@touch $@

docs: setup $(VENV)/.requirements-docs
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs build/docs

clean:
	rm -rf $(VENV) build demo_output *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
