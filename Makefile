# Every target that needs the environment sets it up first, which takes no time when nothing changed.

.NOTPARALLEL:
.PHONY: help setup demo test test-full lint format bench fuzz clean

# Tests start a thousand Python processes, each of which would compile the sources again.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
PYTEST := $(BIN)/pytest

help:
	@echo 'make setup      .venv with pinned packages; installs or names the system packages that are missing'
	@echo 'make demo       builds two variants of the example workload, records, compares; report in demo-out/'
	@echo 'make test       all tests that take seconds'
	@echo 'make test-full  the long proofs as well: every build of the workload, planted changes, simulations'
	@echo 'make lint       ruff and mypy'
	@echo 'make format     lets ruff rewrite the sources'
	@echo 'make bench      speed against perf and other tools'
	@echo 'make fuzz       10,000 damaged inputs, and the property tests with many more random examples'
	@echo 'make clean      removes what was built, recorded and cached in this directory'
	@echo
	@echo 'SLOTSCOPE_ANALYSIS_ONLY=1 make setup: to read recordings only; needs neither perf nor a compiler'

setup:
	@scripts/setup.sh

demo: setup
	$(BIN)/slotscope demo $(DEMO_ARGS)

# Measurements must not run beside each other, so they have a run of their own; it is made in any case.  The others wait for
# processes half of the time: four at a time keep two CPUs busy.  A module's tests stay together, so that its fixtures are made
# once, and in their order: tests that wait long come before those that do not.
BESIDE := not perf or (beside and not alone)
test-full: FULL := --full
test test-full: setup
	@status=0; set -x; \
	$(PYTEST) -q -rs $(FULL) -n 4 --dist loadscope --no-loadscope-reorder -m '$(BESIDE)' $(PYTEST_ARGS) || [ $$? = 5 ] || status=1; \
	$(PYTEST) -q -rs $(FULL) -m 'not ($(BESIDE))' $(PYTEST_ARGS) || [ $$? = 5 ] || status=1; \
	{ set +x; } 2>/dev/null; exit $$status

# Without ruff's cache, which does not notice that the order of imports depends on which modules exist.
lint: setup
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup
	$(BIN)/python tests/bench/bench.py $(BENCH_ARGS)
	$(BIN)/python tests/bench/symbolization.py
	$(BIN)/python tests/bench/attach_overhead.py

fuzz: setup
	$(PYTEST) -q --full -n 2 -m "hypothesis or fuzz" $(PYTEST_ARGS)

clean:
	rm -rf .venv build demo-out .slotscope .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
