# Two commands bring the project to life: `make demo` and `make test`. Both build what they need in
# virtual environments of their own (.venv, .venv-lowest), once, and say what they do.

PYTHON ?= python3
BIN := .venv/bin
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check --no-build-isolation
INPUTS := pyproject.toml constraints/pinned.txt tools/make-venv.sh tools/system-libraries.sh
GROUPS := --group test --group lint --group docs
# Coverage is asked of every room but backends and quant: those run in workers that fork, are killed
# or die by design, and much of what they do is not seen by the measurement.
COVERAGE := 95
MEASURED := --omit='src/tipcheck/backends/*,src/tipcheck/quant/*,src/tipcheck/precision_debug.py'
# Two processes: a test waits for others more than it computes. The blocks of a document, and the
# tests that share a fixture, stay in one of them.
SIDE_BY_SIDE := -n 2 --dist loadfile

say = @printf '\n\033[1m== %s\033[0m\n' $(1)

.DEFAULT_GOAL := help
.PHONY: help demo test check-style check-types check-rooms check-tests check-docs test-lowest bench \
	docs clean

help:
	@echo "make demo         run the product on a bundled example"
	@echo "make test         run every check that CI runs"
	@echo "make bench        measure, and write the table of the benchmark page"
	@echo "make docs         build the documentation into docs/_build/html"
	@echo "make clean        remove everything that was built"

demo: .venv/.ready-to-run
	$(call say,'What this machine can run')
	@$(BIN)/tipcheck doctor
	$(call say,'The same model run in several ways')
	@$(BIN)/tipcheck demo --output out/demo
	$(call say,'The chain of a model repo: in float32 and in mixed precision and quantised')
	@PYTHON=$(CURDIR)/$(BIN)/python tools/demo-example.sh out/demo/mobilenet_v3

test: check-style check-types check-rooms check-tests check-docs test-lowest
	$(call say,'All checks passed')

check-style: .venv/.ready-to-test
	$(call say,'Style: ruff')
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .

check-types: .venv/.ready-to-test
	$(call say,'Types: mypy')
	@$(BIN)/mypy

check-rooms: .venv/.ready-to-test
	$(call say,'Room rules: import-linter')
	@$(BIN)/lint-imports --no-cache

check-tests: .venv/.ready-to-test
	$(call say,'Tests: pytest (README and docs included)')
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) --cov --cov-report=
	@$(BIN)/coverage report $(MEASURED) --fail-under=$(COVERAGE)

check-docs: docs
	$(call say,'Docs built without a warning')

docs: .venv/.ready-to-test
	$(call say,'Docs: sphinx')
	@$(BIN)/python -m sphinx -W --keep-going -n -q -b html docs docs/_build/html

# The examples have requirements of their own, and are tested above.
test-lowest: .venv-lowest/.ready
	$(call say,'Tests with the lowest supported versions')
	@.venv-lowest/bin/python -m pytest tests -q $(SIDE_BY_SIDE) -p no:cacheprovider -m "not slow" \
		--ignore=tests/examples

bench: .venv/.ready-to-test
	$(call say,'Benchmarks')
	@$(BIN)/python bench/run.py

clean:
	rm -rf .venv .venv-lowest .bootstrap build out docs/_build .coverage .coverage.* \
		.pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

.venv/.ready-to-run: $(INPUTS)
	$(call say,'Preparing .venv: PaddlePaddle and tipcheck (once; about 250 MB)')
	@PYTHON=$(PYTHON) tools/system-libraries.sh
	@PYTHON=$(PYTHON) tools/make-venv.sh .venv constraints/pinned.txt
	@$(BIN)/python $(PIP_INSTALL) --constraint constraints/pinned.txt hatchling editables
	@$(BIN)/python $(PIP_INSTALL) --constraint constraints/pinned.txt --editable '.[paddle]'
	@touch $@

.venv/.ready-to-test: .venv/.ready-to-run
	$(call say,'Preparing .venv: test tools and the other engines (once; about 300 MB)')
	@$(BIN)/python $(PIP_INSTALL) --constraint constraints/pinned.txt \
		--editable '.[paddle,onnxruntime,openvino,ray]' $(GROUPS)
	@touch $@

.venv-lowest/.ready: .venv/.ready-to-test constraints/lowest.txt
	$(call say,'Preparing .venv-lowest (once; about 250 MB)')
	@mkdir -p build
	@grep -viE '^(libcst|msgspec|numpy|paddlepaddle|rich|shtab|xlsxwriter)==' constraints/pinned.txt \
		| cat - constraints/lowest.txt > build/lowest.txt
	@PYTHON=$(PYTHON) tools/make-venv.sh .venv-lowest build/lowest.txt
	@.venv-lowest/bin/python $(PIP_INSTALL) --constraint build/lowest.txt hatchling editables
	@.venv-lowest/bin/python $(PIP_INSTALL) --constraint build/lowest.txt \
		--editable '.[paddle]' --group test
	@touch $@
