PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.installed
BROKER := $(VENV)/.broker

# A broker starts a third faster from compiled bytecode.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install run demo check unit test lint types wheel try-pure try-native prepare test-compiled fuzz simulate bench conformance clean

help:  ## show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): pyproject.toml constraints.txt
	@echo "installing Barnabas with Spark, test clients and tools into $(VENV): about 1.5 GB, some minutes the first time"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,bench]'
	@$(BIN)/python -m compileall -q barnabas broker pipeline protocol storage
	@touch $(BROKER) $@

# The broker itself needs six small packages: nobody should have to download Spark to try it.
$(BROKER): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@$(BIN)/python -m compileall -q barnabas broker pipeline protocol storage
	@touch $@

install: $(READY)  ## create the virtual environment and install everything into it

run: $(BROKER)  ## start a broker on 127.0.0.1:9092, with its data in ./data
	$(BIN)/barnabas serve --listen 127.0.0.1:9092 --data data

demo: $(READY)  ## run a pipeline from end to end: a broker, a generator, Spark, and a picture of the result
	$(BIN)/python examples/pipelines/demo.py

check: $(READY)  ## lint, types and the quick unit tests, side by side
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target unit lint types

unit: $(READY)
	$(BIN)/python -m pytest -q -n auto -m 'not java and not slow' --hypothesis-profile=quick tests/protocol tests/storage tests/broker tests/barnabas

test: $(READY)  ## run the whole test suite on all cores, in about eleven minutes
	$(BIN)/python -m pytest -q -n auto

lint: $(READY)  ## check style, import direction and the compose file
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec docker-compose.yml

types: $(READY)  ## check the types
	$(BIN)/mypy

PURE     := dist/.pure
NATIVE   := dist/.native
COMPILED := build/compiled
SOURCES  := $(shell git ls-files 2>/dev/null | grep -E '^(barnabas|broker|pipeline|protocol|storage)/.*\.')

# The sdist, and both wheels built from it, with the build tools that are installed here: an environment for each build
# would only install them again. (SOURCES with a dot are files; the others are links to folders.)
$(PURE): $(READY) hatch_build.py LICENSE README.md $(SOURCES)
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	@touch $@

$(NATIVE): $(PURE)
	BARNABAS_COMPILE=1 $(BIN)/python -m build --no-isolation --wheel --outdir dist dist/*.tar.gz
	@touch $@

$(COMPILED): $(NATIVE)
	rm -rf $@
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $@ dist/*-cp*.whl

wheel: try-pure try-native  ## build a pure and a compiled wheel in dist/, and test each in an empty environment

try-pure: $(PURE)
	$(BIN)/python -m tests.support.wheels dist/*-none-any.whl

try-native: $(NATIVE)
	$(BIN)/python -m tests.support.wheels dist/*-cp*.whl

# Downloads and archives for Java, and the tests' bytecode, which every worker would otherwise compile for itself.
prepare: $(READY)
	$(BIN)/python -m tests.support.preparation
	$(BIN)/python -m pytest --collect-only -qq >/dev/null

test-compiled: $(COMPILED)  ## test the hot path, compiled with mypyc
	PYTHONPATH=$(COMPILED):. $(BIN)/python -P -m pytest -q -n auto tests/storage tests/broker/server tests/broker/replica tests/broker/handlers

fuzz: $(READY)  ## fuzz a broker; FRAMES=… and SEED=… are optional
	$(BIN)/python -m tests.fuzz $(if $(FRAMES),--frames $(FRAMES)) $(if $(SEED),--seed $(SEED))

simulate: $(READY)  ## run brokers on simulated time, network and disks, from many seeds; SEEDS=1-300 is optional
	$(BIN)/python -m barnabas.simulation --jobs $(shell nproc) --seeds $(or $(SEEDS),1-300)

bench: $(COMPILED)  ## run the benchmarks with the hot path compiled
	BARNABAS_BUILD=$(CURDIR)/$(COMPILED) $(BIN)/python -m benchmarks

conformance: $(READY)  ## check Apache Kafka and Barnabas, and write barnabas/conformance/report.md
	$(BIN)/python -m tests.support.conformance

clean:  ## remove everything that was built, including the virtual environment; ./data stays
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
