# Two commands: `make run` sets everything up and runs the main job, `make test` sets everything up and passes the tests.
PYTHON ?= python3
VENV := .venv
SHELL := bash
BIN := $(VENV)/bin
WORKSPACE ?= workspace
JOBS ?= 3  # for two cores: some tests wait for servers
PYTEST = $(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadfile -rfEs
export DO_NOT_TRACK := 1
export PREFECT_SERVER_ANALYTICS_ENABLED := false

.PHONY: run test test-fast lint setup servers docs clean help

help:  ## Say what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

setup: $(VENV)/.ready  ## Make the virtual environment

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 14) else "Python 3.11, 3.12 or 3.13 is needed; run: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt pip
	@echo "Downloading and installing packages: minutes. Of 10 MB or more:"
	@set -o pipefail; $(BIN)/python -u -m pip install --progress-bar off --constraint constraints.txt --editable '.[all]' --group test \
		| sed -u -n -E 's/^ *(Downloading|Using cached) ([^ ]+ \([0-9]{2,}\.[0-9] MB\))$$/  \2/p; s/^Installing.*/Installing them/p'
	@touch $@

run: setup  ## Build the starter collection on the embedded profile
	$(BIN)/quit build --profile embedded --workspace $(WORKSPACE) --source starter

test: setup lint servers  ## Run all the tests that this machine can
	$(PYTEST) --durations 30

servers: setup  ## Make the environments of the servers that tests start (once; minutes)
	$(BIN)/python -m tests.servers.prepare

test-fast: JOBS = 2
test-fast: setup  ## Run the tests that start no server and build no workspace
	$(PYTEST) -m 'not slow'

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

docs: setup  ## Build the site of the documentation: site/index.html
	rm -rf site build/site
	$(BIN)/python -m sphinx --quiet --fail-on-warning --fresh-env --doctree-dir build/doctrees --conf-dir docs . build/site
	mv build/site site

clean:  ## Remove the environment, the site and caches (not workspaces)
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis *.egg-info build site
