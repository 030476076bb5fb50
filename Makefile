PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.installed
BROKER := $(VENV)/.broker

# A broker starts a third faster from compiled modules.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install run demo test lint types test-compiled bench conformance clean

help:  ## this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,bench]'
	@$(BIN)/python -m compileall -q barnabas broker protocol storage
	@touch $(BROKER) $@

# What the broker itself needs is five small packages: nobody has to fetch Spark to see one run.
$(BROKER): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@$(BIN)/python -m compileall -q barnabas broker protocol storage
	@touch $@

install: $(READY)  ## make the virtual environment and install everything into it

run: $(BROKER)  ## start a broker on 127.0.0.1:9092, its data in ./data
	$(BIN)/barnabas serve --listen 127.0.0.1:9092 --data data

demo: $(READY)  ## a pipeline from end to end: a broker, a generator, Spark, and a picture of the result
	$(BIN)/python examples/pipelines/demo.py

test: $(READY)  ## run the whole test-suite
	$(BIN)/python -m pytest

lint: $(READY)  ## check style, the direction of imports and the compose file
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec docker-compose.yml

types: $(READY)  ## check the types
	$(BIN)/mypy

COMPILED := build/compiled
SOURCES  := $(shell git ls-files '*.py' 2>/dev/null | grep -E '^(barnabas|broker|protocol|storage)/')

$(COMPILED): $(READY) hatch_build.py $(SOURCES)
	rm -rf $@
	BARNABAS_COMPILE=1 $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps --target $@ .

test-compiled: $(COMPILED)  ## test the hot path as it is compiled by mypyc
	PYTHONPATH=$(COMPILED):. $(BIN)/python -P -m pytest -q -n 2 tests/storage tests/broker/server tests/broker/replica tests/broker/handlers

bench: $(COMPILED)  ## measure, with the hot path compiled
	BARNABAS_BUILD=$(CURDIR)/$(COMPILED) $(BIN)/python -m benchmarks

conformance: $(READY)  ## check Apache Kafka and Barnabas, and write conformance/report.md
	$(BIN)/python -m tests.support.conformance

clean:  ## remove what was built, the virtual environment included; ./data stays
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
