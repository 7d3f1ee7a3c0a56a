# `make` alone lists the recipes.
.DEFAULT_GOAL := help
.PHONY: help setup setup-dev run test test-fast test-browser test-spark test-long test-bounds coverage check bench figures pictures docs lock clean
PYTHON ?= python3.11
BIN := .venv/bin
# A run is four short processes: without bytecode each would compile our sources anew, a fifth of its start.
unexport PYTHONDONTWRITEBYTECODE

help: ## list the recipes
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: .venv/.ready ## create .venv from requirements.lock (done by the others when needed)

run: setup ## run the default experiment, print its result, say where the page is
	@$(BIN)/exchange run --transport zeromq --rate 8000 --orders 40000 --sampling-interval 100 --spark

setup-dev: .venv/.ready-dev ## add the test tools of requirements-dev.lock, and a browser, RabbitMQ and tcpdump for the tests; prepare Spark
	@.ci/programs
	@$(MAKE) --silent --jobs 2 .venv/.kernels .venv/.spark

test: setup-dev ## everything the tests need, then the tests
	@.ci/tests 4

test-fast: setup-dev ## the inner loop, two minutes: no broker, JVM, browser or process, few examples of each property
	@EXCHANGE_TESTS_EXAMPLES=5 $(BIN)/python -m pytest --numprocesses 2 --dist loadgroup -m "fast and not long and not jvm"

test-browser: setup-dev ## the pages, opened in a real browser
	@.ci/tests 2 -m "browser and not long"

test-spark: setup-dev ## Spark: its jobs, the summary of a run, a cluster, kills, a query beside a run, a simulation
	@.ci/tests 2 -m "jvm and not long"

test-long: setup-dev ## what make test leaves out: more signals, transports and kills, and ten times the examples of each property
	@EXCHANGE_TESTS_EXAMPLES=250 .ci/tests 3 -m "long or hypothesis and not jvm"

test-bounds: setup-dev ## the engine's tests once more, with numba checking every array index
	@NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=.venv/numba-boundscheck $(BIN)/python -m pytest tests/matching_engine

coverage: setup-dev ## the share of lines that make test runs, and each line in build/coverage/index.html; no threshold
	@$(BIN)/python -m pytest --numprocesses 4 --dist loadgroup --cov --cov-report= || test $$? -eq 1
	@$(BIN)/python -m coverage html --quiet
	@echo "coverage: $$($(BIN)/python -m coverage report --format=total) % of the lines of Python; build/coverage/index.html has each line."
	@echo "Not seen: kernels that numba compiles, and what runs in processes of the exchange command."

check: setup-dev ## style, types, and the arrows of import
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports --no-cache

bench: setup ## how fast our own code is, against the references in benchmarks/reference
	@$(BIN)/python -m benchmarks

figures: setup ## the figures of README and the results of record, measured anew: 50 minutes of a quiet machine
	@.ci/figures

pictures: setup-dev ## the pictures of pages in docs/pictures, made anew
	@$(BIN)/python .ci/pictures

docs: .venv/.ready-docs ## the site of all pages, in build/site; a link that leads nowhere fails; it needs no setup before
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet && echo "site: build/site/index.html"

lock: ## resolve the dependencies anew (needs uv)
	@uv pip compile --universal --generate-hashes --no-emit-index-url --python-version 3.11 --no-header -q \
	    --extra build --extra all -o requirements.lock pyproject.toml
	@uv pip compile --universal --generate-hashes --no-emit-index-url --python-version 3.11 --no-header -q \
	    --extra build --extra all --extra connect --extra dev -c requirements.lock -o requirements-dev.lock pyproject.toml

clean: ## remove .venv, caches and what was built; results stay
	@rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.ready: requirements.lock pyproject.toml
	@echo "creating .venv from requirements.lock: 1.25 GB, which takes a minute or two"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || python3 -m venv .venv
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.venv/.ready-dev: .venv/.ready requirements-dev.lock
	@echo "adding the test tools"
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

# The site lists every option, so it needs the packages that commands import, and mkdocs in the version of the lock.
.venv/.ready-docs: pyproject.toml requirements-dev.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || python3 -m venv .venv
	@mkdir -p build && sed -n 's/^\([a-zA-Z0-9].*==.*[^ \\]\) *\\*$$/\1/p' requirements-dev.lock > build/docs-versions.txt
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check -c build/docs-versions.txt -e '.[docs,report,serve]'
	@touch $@

.venv/.kernels: | .venv/.ready-dev
	@echo "compiling the kernels"
	@$(BIN)/python .ci/kernels && touch $@

.venv/.spark: | .venv/.ready-dev
	@$(BIN)/exchange spark prepare; touch $@
