# Every target sets itself up from nothing: Python 3.11+, git and make are all that must be there.
VENV := .venv
BIN := $(VENV)/bin
IMAGE ?= fishplate:0.1.0

.PHONY: help demo test lab lab-up lab-down lint format bench oracle-diff mutants fuzz protos requirements clean image
help:  ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/.dev: requirements/dev.txt pyproject.toml scripts/setup
	scripts/setup dev

$(BIN)/.run: requirements/run.txt pyproject.toml scripts/setup
	scripts/setup run

demo: $(BIN)/.run  ## the story so far, on simulated hosts
	$(BIN)/fishplate demo

test: $(BIN)/.dev lint  ## lint, then every test that needs no lab
	$(BIN)/pytest -n 2 -m "not lab"

lab: $(BIN)/.dev  ## real Kubernetes, real RDMA devices: build, boot, test, tear down; nothing may be left behind
	$(BIN)/python -m lab build
	$(BIN)/python -m lab footprint take $(BIN)/.lab-footprint
	$(BIN)/python -m pytest -m lab -v --durations=10 tests/lab
	$(BIN)/python -m lab footprint compare $(BIN)/.lab-footprint

lab-up: $(BIN)/.dev  ## two nodes to play with, until `make lab-down`
	$(BIN)/python -m lab up

lab-down: $(BIN)/.dev  ## end what `make lab-up` started
	$(BIN)/python -m lab down

image: $(BIN)/.dev  ## the driver's image for amd64 and arm64, as OCI archives in build/image
	for arch in amd64 arm64; do $(BIN)/python -m lab image $(IMAGE) -o build/image/fishplate-$$arch.tar --arch $$arch \
	  --script deploy/image-root --entrypoint /usr/bin/fishplate --cmd driver || exit 1; done

lint: $(BIN)/.dev  ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(BIN)/.dev  ## let ruff rewrite
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(BIN)/.dev  ## measure; prints ratios
	$(BIN)/python -m benchmarks

oracle-diff: $(BIN)/.dev  ## random questions to our CEL and allocator and to Kubernetes' own; needs Go
	$(BIN)/python -m oracle.diff cel --minor 1.36 --minor 1.37 --count 20000
	$(BIN)/python -m oracle.diff cel --minor 1.34 --minor 1.35 --count 1000
	$(BIN)/python -m oracle.diff allocate --minor 1.36 --minor 1.37 --count 5000
	$(BIN)/python -m oracle.diff allocate --minor 1.34 --minor 1.35 --count 1000

mutants: $(BIN)/.dev  ## remove each claimed protection; the named test must fail
	$(BIN)/python -m mutants

FUZZ_SECONDS := 60
fuzz: $(BIN)/.dev  ## hostile bytes chosen by coverage, for FUZZ_SECONDS; atheris has wheels for CPython on x86_64 only
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements/fuzz.txt
	$(BIN)/python -m tests.fuzz.wire -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -rss_limit_mb=512

protos: $(BIN)/.dev  ## make the message classes of wire/proto again
	scripts/protos

requirements: $(BIN)/.dev  ## renew the hashed requirement files
	scripts/requirements

clean:  ## forget the environment and the caches
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist
