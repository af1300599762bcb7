# The project's commands: `make` lists them. Each installs what is missing first (scripts/packages.txt).
.DEFAULT_GOAL := help
.PHONY: help setup build demo test test-more bench test-torch coverage fuzz format install clean
# The tools that setup installs come before others of the same name, such as a cmake from pip.
export PATH := /usr/bin:$(PATH)
JOBS := $(shell nproc)
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60

help:
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

setup: ## install the missing Debian packages, named first (sudo only when not root)
	@scripts/setup.sh build test python

build: ## build the command: build/release/bin/levelhead
	@scripts/setup.sh build
	@scripts/build.sh release levelhead_cli

demo: build ## judge the two captures of trained models that the command carries, in text and as build/demo.html
	build/release/bin/levelhead check --report build/demo.html

test: setup ## check the format, then run all tests: release, the Python package, and with address and undefined-behaviour sanitizers
	scripts/format.sh --check
	scripts/build.sh release
	ctest --preset release -j $(JOBS)
	scripts/python.sh
	scripts/build.sh asan
	ctest --preset asan -j $(JOBS)

test-more: ## lint, run all tests in which threads meet with the thread sanitizer, and every kernel on more random problems (slower)
	@scripts/setup.sh build test more
	scripts/lint.sh
	scripts/build.sh tsan levelhead_tests
	ctest --preset tsan -j $(JOBS)
	LEVELHEAD_RANDOM_CASES=150 ctest --preset release -j $(JOBS) -R '^All/RandomProblems'

test-torch: build ## run the Python package's tests with PyTorch too (pip downloads it unless it is there)
	@scripts/setup.sh python
	scripts/python.sh test-torch

bench: ## time forward and decode against PyTorch, and every kernel: bench/results/CPU (half an hour, needs a quiet machine)
	@scripts/setup.sh build bench
	scripts/bench.sh

coverage: ## count the lines and error sentences that the tests reach: build/coverage/html/index.html
	@scripts/setup.sh build test coverage
	scripts/build.sh coverage
	scripts/coverage.sh

fuzz: ## try the readers and attend on mutated input, FUZZ_SECONDS (60) for each of three fuzzers
	@scripts/setup.sh build fuzz
	scripts/build.sh fuzz fuzzers
	scripts/fuzz.sh $(FUZZ_SECONDS)

format: ## format all C++ files
	@scripts/setup.sh build test
	scripts/format.sh

install: build ## install the library, headers and command below PREFIX (/usr/local)
	cmake --install build/release --prefix $(PREFIX)

clean: ## remove all that was built
	rm -rf build
