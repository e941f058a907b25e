PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

.PHONY: run test check docs bench fuzz sanitize clean

run: $(READY)
	$(BIN)/ptxemu run samples/saxpy && $(BIN)/ptxemu run samples/mandelbrot --output-dir out

test: $(READY)
	$(BIN)/pytest -n auto --dist loadgroup

check: $(READY)
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

docs: $(READY)
	$(BIN)/python docs/instructions.py

bench: $(READY)
	mkdir -p out && $(BIN)/python bench/run.py --json out/bench.json && $(BIN)/python bench/front.py

fuzz: $(READY)
	$(BIN)/pytest -n auto --hypothesis-profile=fuzz tests/test_fuzz.py
	$(BIN)/python tests/fuzz_front.py --iterations 1000000
	$(BIN)/python tests/fuzz_dialects.py --seconds 600

sanitize: $(READY)
	$(BIN)/python tests/sanitize.py address && $(BIN)/python tests/sanitize.py thread

clean:
	rm -rf .venv build dist out *.egg-info ptxemu/_runtime.*.so ptxemu/_runtime.c ptxemu/syntax/_tables.py

# Everything is installed into a virtual environment, again whenever the build's inputs change: the C runtime, the grammar's tables.
$(READY): pyproject.toml setup.py ptxemu/syntax/grammar.py $(wildcard runtime/*.* csrc/*)
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip && $(BIN)/pip install --quiet -e '.[dev]'
	touch $@
