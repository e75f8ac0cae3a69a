# Two commands: `make run` sets everything up and runs the main job, `make test` sets everything up and passes the tests.
PYTHON ?= python3
VENV := .venv
SHELL := bash
BIN := $(VENV)/bin
WORKSPACE ?= workspace
JOBS ?= 3  # for two cores: some tests wait for servers
ifdef NEWEST  # the newest of everything; without review, whose label-studio-sdk holds NumPy below 2.3
CONSTRAINTS := constraints-newest.txt
EXTRAS := models,flows,retrieval,plots,finetune,smollm,ray
FAST := not slow or frozen
else
CONSTRAINTS := constraints.txt
EXTRAS := all
FAST := not slow
endif
PACKAGES = --constraint $(CONSTRAINTS) --editable '.[$(EXTRAS)]' --group test
PYTEST = $(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadfile -rfEs
export DO_NOT_TRACK := 1
export PREFECT_SERVER_ANALYTICS_ENABLED := false
# Mypy reads packages for a minute: once, not per checkout.
export MYPY_CACHE_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/quit/mypy
unexport PYTHONDONTWRITEBYTECODE  # uv compiles nothing: each process would compile its packages again, torch in 10 s

.PHONY: run test test-fast lint setup newest servers docs clean help

help:  ## Say what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

setup: $(VENV)/.ready  ## Make the virtual environment, with uv where it is installed

$(VENV)/.ready: pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 15) else "Python 3.11 to 3.14 is needed; run: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
ifneq ($(shell command -v uv),)  # it reads no setting of pip's; there may be a smaller torch in this one
	UV_FIND_LINKS="$${UV_FIND_LINKS-$${PIP_FIND_LINKS// /,}}" uv pip install --python $(BIN)/python pip $(PACKAGES)
else
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS) pip
	@echo "Downloading and installing packages: minutes. Of 10 MB or more:"
	@set -o pipefail; $(BIN)/python -u -m pip install --progress-bar off $(PACKAGES) \
		| sed -u -n -E 's/^ *(Downloading|Using cached) ([^ ]+ \([0-9]{2,}\.[0-9] MB\))$$/  \2/p; s/^Installing.*/Installing them/p'
endif
	@touch $@

newest:  ## Renew constraints-newest.txt, and say what holds packages back: make newest PYTHON=python3.13
	rm -rf .venv-newest
	: > constraints-newest.txt
	$(MAKE) setup NEWEST=1 VENV=.venv-newest
	.venv-newest/bin/python .ci/pins.py > constraints-newest.txt

run: setup  ## Build the starter collection on the embedded profile
	$(BIN)/quit build --profile embedded --workspace $(WORKSPACE) --source starter

test: setup lint servers  ## Run all the tests that this machine can
	$(PYTEST) --durations 30

servers: setup  ## Make the environments of the servers that tests start (once; minutes)
	$(BIN)/python -m tests.servers.prepare

test-fast: JOBS = 2
test-fast: setup  ## Run the tests that start no server and build no workspace
	$(PYTEST) -m '$(FAST)'

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
