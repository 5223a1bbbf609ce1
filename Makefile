# `make help` lists what there is. PYTHON names another interpreter, ARGS the demo's flags, PYTEST_ARGS pytest's.
# Everything else is set by KIMI_DEMO_* variables: make demo KIMI_DEMO_PORT=7870

PYTHON ?= $(shell command -v python3 || command -v python)
VENV_PYTHON := .venv/bin/python
SETUP = @test -n "$(PYTHON)" || { echo "Python 3.11, 3.12 or 3.13 is needed, and no python3 was found: install it, then run this again." >&2; exit 1; }; \
	"$(PYTHON)" scripts/install.py

.DEFAULT_GOAL := help
.PHONY: help demo install test soak bench shots lint clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile

demo: ## install if needed, then start the page on 127.0.0.1:7860 (ARGS="--base-url http://HOST:8000/v1" for flags)
	$(SETUP)
	@exec $(VENV_PYTHON) app.py $(ARGS)

install: ## everything that `make demo` needs, without starting it
	$(SETUP)

test: ## install the tests' packages and a browser, then run every test but the long ones (PYTEST_ARGS="tests/ui -x")
	$(SETUP) --tests
	@exec $(VENV_PYTHON) -m pytest --durations=10 $(PYTEST_ARGS)

soak: ## the long tests
	$(SETUP) --tests
	@exec $(VENV_PYTHON) -m pytest -m soak --durations=10 $(PYTEST_ARGS)

bench: ## what the page costs against the raw way, as a table and in bench.json (ARGS="--quick" for a trial run)
	$(SETUP) --tests
	@exec $(VENV_PYTHON) -m kimi_demo bench --json bench.json $(ARGS)

shots: ## the README's screenshots, made from the running page
	$(SETUP) --tests
	@exec $(VENV_PYTHON) scripts/shots.py $(ARGS)

lint: ## ruff and mypy
	$(SETUP) --tools
	@$(VENV_PYTHON) -m ruff check .
	@$(VENV_PYTHON) -m ruff format --check .
	@$(VENV_PYTHON) -m mypy

clean: ## remove .venv and the caches; the data folder stays
	rm -rf .venv .venv.log .venv.lock .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +
