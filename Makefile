# The verbs of daily work; `make` alone lists them. Each calls a script.
.DEFAULT_GOAL := help
.PHONY: help serve test build install lint bench fuzz soak image package release clean

help: ## List these verbs
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

serve: ## Install what is missing, build, and serve models/ on http://127.0.0.1:8080
	@deploy/quickstart.sh

test: ## Install what the tests need, build, and run the tests
	@tests/run.sh

build: ## Build into build/, with what is installed
	@deploy/build.sh build

install: ## Build and install program and library below PREFIX (default /usr/local; DESTDIR before it)
	@deploy/install.sh

lint: ## Check layout, dialect, rooms, scripts and public headers, and run clang-tidy
	@tests/lint/run.sh

bench: ## Measure against nginx and write docs/benchmarks.md (WORKLOAD=name: one row only; WORKLOAD=list)
	@tests/bench/run.sh --workload "$(WORKLOAD)"

fuzz: ## Fuzz every reader and parser, each for a minute (FUZZ_SECONDS=60)
	@tests/fuzz/run.sh

soak: ## Keep a server under mixed traffic for an hour and check every answer (SOAK_SECONDS=3600)
	@tests/soak/run.sh

image: ## Build a container image and its SBOM with docker, podman or buildah
	@deploy/image.sh

package: ## Build a Debian package for this release of Debian
	@deploy/package.sh

release: ## Build the files of a release into dist/: packages, tarball, image, SBOMs, checksums, provenance
	@deploy/release.sh

clean: ## Remove everything that was built
	@rm -rf build build-* dist .venv
