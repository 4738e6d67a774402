# Two commands on a fresh machine: `make quickstart` and `make test`. Each installs what it needs, and asks nothing.
.DEFAULT_GOAL := help
.PHONY: help quickstart test venv lint types fast live coverage bench clean

help: ## List what can be made
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1	/' | expand -t 20

quickstart: ## Install, then run the example experiment end to end: probes, controls, cells, scoreboard, report
	@sh .ci/quickstart.sh

test: ## The whole gate: format, lint, types, fast tests, live tests on Docker and bubblewrap
	@sh .ci/gate.sh lint types fast live

venv: ## Make .venv with Proctor and the gate's tools
	@sh .ci/venv.sh dev

lint: ## ruff: format and rules
	@sh .ci/gate.sh lint

types: ## mypy, strict
	@sh .ci/gate.sh types

fast: ## The tests that need no engine, sandbox, network or model
	@sh .ci/gate.sh fast

live: ## The tests that need them; an engine is started, and ended again, if none answers
	@sh .ci/gate.sh live

coverage: ## The fast tests once more, in one process, with the share of lines and branches that they reach
	@sh .ci/gate.sh coverage

bench: ## Measure start-up, verification, the price of a trivial cell and of a file tool, and memory against their limits
	@sh .ci/bench.sh

clean: ## Remove .venv, caches and build/; runs/ and the state folder stay
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
