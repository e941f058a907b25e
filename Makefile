PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
ENVIRONMENT := .venv/environment
SITE := .venv/site
RUNTIME := ptxemu/_runtime.abi3.so
LIBRARY := ptxemu/libptxemu.so
TABLES := ptxemu/syntax/_tables.py
GRAMMAR := $(addprefix ptxemu/syntax/,grammar.py values.py symbols.py words.py)

COMPILER := $(filter-out $(TABLES),$(shell find ptxemu -name '*.py'))

C_FILES := $(wildcard csrc/*/*.[ch] cuda/*.[ch] cuda/*/*.[ch] ptxemu/include/*.h docs/examples/*.c)

# Where this is set, each of the many interpreters that tests start would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-fast test-times check format docs generated bench fuzz sanitize test-clients clean

run: $(READY)
	$(BIN)/ptxemu run samples/saxpy && $(BIN)/ptxemu run samples/mandelbrot --output-dir out

# A test that hangs fails; the slowest takes a minute, its fixtures three.
test: $(READY)
	$(BIN)/pytest -n auto --timeout 900

# What a change needs first: everything but the tests of tests/data/slow_tests.txt.
test-fast: $(READY)
	$(BIN)/pytest -n auto -m "not slow"

# Writes that list, on a machine that does nothing else.
test-times: $(READY)
	$(BIN)/pytest -n auto --time-tests

check: $(READY)
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(C_FILES) && $(BIN)/python tools/lint_c.py

format: $(READY)
	$(BIN)/ruff check --fix . ; $(BIN)/ruff format . && $(BIN)/clang-format -i $(C_FILES)

# The site, into build/site; a link that leads nowhere is an error.
docs: generated $(SITE)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# What is written from the sources and kept with them: the list of instructions, and what type checkers know of the runtime.
generated: $(READY)
	$(BIN)/python docs/instructions.py && $(BIN)/python tools/stubs.py

bench: $(READY)
	mkdir -p out && $(BIN)/python bench/run.py --json out/bench.json && $(BIN)/python bench/ways.py
	$(BIN)/python bench/front.py
	$(BIN)/python bench/compile.py --json out/compile.json
	$(if $(shell command -v nvcc),$(BIN)/python bench/launch.py --json out/launch.json)
	$(BIN)/python bench/checkers.py --json out/checkers.json && $(BIN)/python bench/seeded.py --json out/seeded.json
	$(BIN)/python bench/suite.py
	$(if $(RODINIA),$(BIN)/python -m bench.rodinia $(RODINIA) --json out/rodinia.json)

# Of which `make test` runs a part.
SAMPLED = $(shell grep -rlE 'mark\.sampled|EVERY_FORM' tests --include='test_*.py')

# What is right, under all checkers.
SILENT := tests/kernels/test_corpus.py tests/kernels/test_modules.py tests/kernels/test_modules_async.py \
	tests/memory/test_corpus_atomics.py tests/memory/test_litmus.py tests/surfaces/test_corpus_surfaces.py

fuzz: $(READY)
	$(BIN)/pytest -n auto --hypothesis-profile=fuzz tests/fuzz/test_fuzz.py
	PTXEMU_EVERY_FORM=1 $(BIN)/pytest -n auto $(SAMPLED)
	PYTHONPATH=. $(BIN)/pytest -n auto -p tests.support.silence $(SILENT) && $(BIN)/ptxemu test samples --check all
	$(BIN)/python -m tests.fuzz.front --iterations 1000000
	$(BIN)/python -m tests.fuzz.dialects --seconds 600
	$(BIN)/python -m tests.fuzz.hostile.hunt
	$(BIN)/python -m tests.fuzz.host --seconds 600
	$(BIN)/python -m tests.fuzz.functions
	$(BIN)/python -m tests.fuzz.engines --kernels 100000

# Programs of others on the CUDA libraries, which are installed under build/clients. SAMPLES, POLYBENCH, RODINIA, if given, are checkouts
# of NVIDIA's cuda-samples, PolyBench-GPU and Rodinia, HECBENCH one of HeCBench, which need nvcc, TINYGRAD one of tinygrad, whose tests need clang, PTX_TESTS,
# DAT3M and FUZZX ones of vosen/ptx_tests, hernanponcedeleon/Dat3M and SemiAnalysisAI/FuzzX, LLVM_TESTS llvm/test/CodeGen/NVPTX of
# llvm-project, which needs LLVM and ptxas; CUPY one of cupy.
# IGUARD is a checkout of csl-iisc/iGUARD-SOSP21, whose programs are compiled already.
# INDIGO, SCOR and SANITIZER_SAMPLES are checkouts of burtscher/IndigoSuite, csl-iisc/ScoR and NVIDIA/compute-sanitizer-samples, which
# need nvcc. NUMBA_TESTS, PYCUDA_TESTS: parts of these suites, or all of them.
test-clients: $(READY)
	$(BIN)/python -m tests.clients.run_programs
	$(BIN)/python -m tests.clients.numba_suite $(NUMBA_TESTS)
	$(if $(shell command -v nvcc),$(BIN)/python -m tests.clients.pycuda_suite $(PYCUDA_TESTS))
	$(if $(CUPY),$(BIN)/python -m tests.clients.cupy_suite $(CUPY))
	$(BIN)/python -m tests.clients.report_in_browser
	$(BIN)/python -m tests.clients.debug_adapter
	$(BIN)/python -m tests.clients.suite_on_dask
	$(BIN)/python -m tests.clients.launch_on_dask
	$(if $(shell command -v nvdisasm),$(BIN)/python -m tests.clients.machine_code)
	$(if $(SAMPLES),$(BIN)/python -m tests.clients.cuda_samples $(SAMPLES))
	$(if $(POLYBENCH),$(BIN)/python -m tests.clients.polybench $(POLYBENCH))
	$(if $(RODINIA),$(BIN)/python -m tests.clients.rodinia $(RODINIA))
	$(if $(HECBENCH),$(BIN)/python -m tests.clients.hecbench $(HECBENCH))
	$(if $(PTX_TESTS),$(BIN)/python -m tests.clients.ptx_tests $(PTX_TESTS))
	$(if $(DAT3M),$(BIN)/python -m tests.clients.dat3m $(DAT3M))
	$(if $(shell command -v nvcc),$(BIN)/python -m tests.clients.cub_checked && $(BIN)/python -m tests.clients.clusters)
	$(if $(INDIGO),$(BIN)/python -m tests.clients.indigo $(INDIGO))
	$(if $(SCOR),$(BIN)/python -m tests.clients.scor $(SCOR))
	$(if $(IGUARD),$(BIN)/python -m tests.clients.iguard $(IGUARD))
	$(if $(SANITIZER_SAMPLES),$(BIN)/python -m tests.clients.sanitizer_samples $(SANITIZER_SAMPLES))
	$(if $(FUZZX),$(BIN)/python -m tests.clients.fuzzx $(FUZZX))
	$(if $(LLVM_TESTS),$(BIN)/python -m tests.clients.llvm_tests $(LLVM_TESTS))
	$(if $(TINYGRAD),$(BIN)/python -m tests.clients.tinygrad_suite $(TINYGRAD))

sanitize: $(READY)
	$(BIN)/python -m tests.support.sanitize

clean:
	rm -rf .venv build dist out *.egg-info ptxemu/_runtime.*.so $(LIBRARY) ptxemu/cuda/lib $(TABLES)

$(SITE): pyproject.toml | $(ENVIRONMENT)
	$(BIN)/pip install -qq --disable-pip-version-check -e '.[site]'
	@touch $@

# pip installs into the environment, and builds the runtime and the tables, once. From then on make builds what has changed. Python
# compiles what it imports of all that is installed, which is a part.
$(READY): $(ENVIRONMENT) $(RUNTIME) $(TABLES)
	@touch $@

$(ENVIRONMENT): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -qq --disable-pip-version-check --no-compile -e '.[dev]'
	@touch $@

# The keys of the CUDA libraries hold a hash of the compiler, too.
$(RUNTIME): setup.py tools/extension.py tools/native.py tools/cuda.py $(wildcard csrc/*/* cuda/* cuda/*/* ptxemu/include/*) $(COMPILER) | $(ENVIRONMENT)
	$(BIN)/python setup.py --quiet build_ext --inplace
	@touch $@

$(TABLES): tools/tables.py $(GRAMMAR) | $(ENVIRONMENT)
	$(BIN)/python tools/tables.py $@
