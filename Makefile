# make farm: install, then convert the built-in target. make test: what CI runs. Both are quick when nothing is to do.
SHELL := /bin/bash
.DELETE_ON_ERROR:
.PHONY: setup apt engine toolchain farm attacks scenarios test test-long down clean lock

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PACKAGES := build-essential clang git libclang-dev python3-venv redis-server
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
# Names a file by the content of others, so that a touched file is no reason to install again.
content = $(shell cat $(1) 2>/dev/null | sha256sum | cut -c1-16)
within = timeout --verbose -k 10 $(1)
REQUIRED := $(STAMPS)/requirements-$(call content,requirements.lock pyproject.toml)

setup: apt engine $(REQUIRED) toolchain

apt:
	@missing=$$(dpkg-query -W -f '$${Package} $${db:Status-Status}\n' $(PACKAGES) 2>/dev/null | awk '$$2 == "installed" {print $$1}' \
	  | sort | comm -13 - <(printf '%s\n' $(PACKAGES) | sort)); \
	if [ -n "$$missing" ]; then echo "apt: installing" $$missing; \
	  $(SUDO) apt-get update -qq && DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -y -qq --no-install-recommends $$missing >/dev/null; fi

# An engine of any origin will do; Debian's is installed only where none answers.
engine:
	@docker version >/dev/null 2>&1 || bash containers/engine/start.sh $(SUDO)

$(REQUIRED): requirements.lock pyproject.toml
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check "$$(grep -o '^uv==[^ ]*' requirements.lock)"
	@$(BIN)/uv pip install -q --compile-bytecode --python $(BIN)/python -r requirements.lock
	@$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q farm workers containers drivers
	@mkdir -p $(STAMPS) && rm -f $(STAMPS)/requirements-* && touch $@

toolchain: $(REQUIRED)
	@$(BIN)/python -m containers.toolchain install

farm: setup
	$(BIN)/farm submit --ops all --repo builtin:minigym --accept certified --wait

# Cheats and their honest twins, through the gates; ends with an error if one gets past.
attacks: setup
	$(BIN)/farm selftest attacks

# What a model would say, played to a real farm; ends with an error if one comes to something else.
scenarios: setup
	$(BIN)/farm selftest scenarios

# Each part has a limit of its own, so that one that hangs says which it was.
test: setup
	$(call within,120) $(BIN)/ruff check .
	$(call within,120) $(BIN)/ruff format --check .
	$(call within,300) $(BIN)/mypy
	$(call within,120) $(BIN)/lint-imports
	$(call within,2700) $(BIN)/python -m pytest -m "not long"

test-long: setup
	$(BIN)/python -m pytest -m long

down:
	@[ ! -x $(BIN)/farm ] || $(BIN)/farm down

clean: down
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# Pins what is asked for. Run it to move versions, and commit what it writes.
lock: $(REQUIRED)
	$(BIN)/uv pip compile -q --no-header --annotation-style line --python-version 3.11 --upgrade \
	  --extra dev pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile -q --no-header --annotation-style line --python-version 3.11 --upgrade \
	  containers/toolchain/requirements.in -o containers/toolchain/requirements.txt
