# Each target sets up what it needs, so that any of them works on a fresh clone.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.ONESHELL:
MAKEFLAGS += --no-builtin-rules --no-print-directory

PYTHON ?= python3
CLUSTER ?= clusters/dev-box.yaml
VENV := .venv
BIN := $(VENV)/bin
export PATH := $(CURDIR)/$(BIN):$(CURDIR)/node_modules/.bin:$(PATH)
# jsii asks for no more than a Node runtime; the one in the virtual environment is newer than it knows.
export JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION := 1
# Without its compiled modules each process would spend four seconds on CDK alone, and tests start dozens.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup docs release rehearse live test test-local-aws test-prometheus test-slurm test-kubernetes test-newcomer test-scanner test-torch test-all test-histories test-random month lint format catalog prices time-zones plans schema bench bench-recovery release-templates clean
help: ## Show what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-18s %s\n", $$1, $$2}'

setup: $(VENV)/.installed node_modules/.installed ## Install everything into .venv and node_modules

# Nothing is compiled beforehand: that would take longer than all the rest, and most of it is never imported.
$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "cdk-training-cluster needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Run: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "Setting up $(VENV) (once, about a minute)"
	@[[ -x $(BIN)/python ]] || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt hatchling 2>&1 | { grep -v '^WARNING: Location' || true; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt --no-build-isolation -e '.[dev]' 2>&1 | { grep -v '^WARNING: Location' || true; }
	@touch $@

node_modules/.installed: package.json package-lock.json $(VENV)/.installed
	@npm ci --loglevel=error 2>&1 | { grep -v '^npm warn' || true; }
	@touch $@

# No other target needs these five seconds.
$(VENV)/.docs: $(VENV)/.installed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt --no-build-isolation -e '.[docs]' 2>&1 | { grep -v '^WARNING: Location' || true; }
	@touch $@

docs: setup $(VENV)/.docs ## Build the site into build/site, with warnings as errors, and open it in Chromium (ARGS='--pictures FOLDER')
	@npm ci --prefix scripts/site --loglevel=error
	@NO_MKDOCS_2_WARNING=1 mkdocs build --quiet
	@python -m scripts.site.browse $(ARGS)
	@echo 'build/site/index.html'

rehearse: setup ## Deploy CLUSTER to a local AWS, show what came up, and destroy it with the data kept
	@python -m rehearsal --cluster '$(CLUSTER)' --remove-parts

test: setup ## Run the tests
	@pytest -q -n 2 --dist worksteal

test-local-aws: setup ## Run the local AWS's own tests
	@pytest -q -n 2 --dist worksteal local_aws

# From the machine's own package sources, and not installed. Without apt the tests are skipped, and say so.
build/prometheus/.fetched:
	@mkdir -p $(@D)
	@cd $(@D)
	@if command -v apt-get >/dev/null; then
	@  get() { apt-get -qq download prometheus prometheus-alertmanager 2>/dev/null; }
	@  get || { apt-get -qq update && get; }
	@  for package in *.deb; do dpkg-deb -x "$$package" .; done
	@fi
	@touch $(@F)

test-prometheus: setup build/prometheus/.fetched ## Check rules, collector and dashboards with Debian's Prometheus
	@pytest -q -n 0 -m "" tests/constructs/observability

# No other target needs these ten seconds. Charts that cannot be fetched are not rendered, and the tests say so.
$(VENV)/.kubernetes: $(VENV)/.installed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt --no-build-isolation -e '.[kubernetes]' 2>&1 | { grep -v '^WARNING: Location' || true; }
	@touch $@

test-kubernetes: setup $(VENV)/.kubernetes ## Check the generated Kubernetes folder with Kubernetes' schemas, Trainer's models, Helm and kustomize
	@python -m scripts.fetch_charts
	@pytest -q -n 0 -rs tests/manifests/kubernetes

build/slurm/.fetched: scripts/make_slurm_root.sh
	@bash scripts/make_slurm_root.sh $(@D)
	@touch $@

test-slurm: setup build/slurm/.fetched ## Run jobs through lost nodes, Xids and preemption on Debian's Slurm, and say how long each took
	@pytest -q -s -rs -n 0 -m "" tests/constructs/orchestrators/slurm/test_real_slurm*.py

test-newcomer: setup ## Go from a clone to the bill with the commands that people type, and say how long each took
	@pytest -q -s -m "" tests/rehearsal/test_newcomer.py

TORCH := $(shell sed -n 's/^TESTED_TORCH = "\(.*\)"$$/\1/p' job/cluster_job/torch_version.py)

# An environment of its own, since the library needs no torch. Where the pinned version is a CUDA wheel of 3 GB, or there
# is none, it does not import: the line says so, and what needs it skips.
build/recovery/.installed: Makefile job/cluster_job/torch_version.py job/pyproject.toml pyproject.toml $(VENV)/.installed
	@mkdir -p $(@D)
	@[[ -x $(@D)/venv/bin/python ]] || python -m venv $(@D)/venv
	@install=("$(@D)/venv/bin/python" -m pip install --quiet --disable-pip-version-check)
	@"$${install[@]}" -c constraints.txt torch==$(TORCH) torchft==0.2.0 boto3 hatchling hypothesis numpy psutil pytest 'moto[server]' && "$${install[@]}" -c constraints.txt --no-build-isolation --no-deps -e job && "$(@D)/venv/bin/python" -c 'import torch, torchft' || { echo "torch==$(TORCH) and torchft==0.2.0 cannot be installed or imported on this machine: it needs torch's CPU wheel for $$(python --version)" >&2; exit 1; }
	@touch $@

test-torch: setup build/recovery/.installed ## Run jobs under real torchrun and kill their nodes, rank 0's too
	@build/recovery/venv/bin/python -m pytest -q -s -rs -m torch --confcutdir tests/job -p no:cacheprovider tests/job

bench-recovery: setup build/recovery/.installed ## Measure what a lost node and a checkpoint cost a job (ARGS='--repetitions 5'); build/recovery.json
	@build/recovery/venv/bin/python -m benchmarks.recovery $(ARGS)

# An environment of its own: checkov pins a hundred packages, some of which the library pins otherwise.
build/scanner/.installed: Makefile $(VENV)/.installed
	@mkdir -p $(@D)
	@[[ -x $(@D)/bin/python ]] || python -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile checkov==3.3.30 2>&1 | { grep -v '^WARNING: Location' || true; }
	@touch $@

test-scanner: setup build/scanner/.installed ## Compare checkov's findings with those that docs/security.md states
	@pytest -q -rs -n 0 -m "" tests/constructs/test_scanner.py

test-all: setup ## Run all tests, those that take long for each example over all of them
	@pytest -q -n 2 --dist worksteal -m "" tests local_aws

test-histories: setup ## Draw 100,000 histories of broken nodes, and others of schedules and of what a cluster costs
	@HEALTH_HISTORIES=$${HEALTH_HISTORIES:-100000} SCHEDULE_HISTORIES=$${SCHEDULE_HISTORIES:-1000} \
		SPEND_HISTORIES=$${SPEND_HISTORIES:-1000} pytest -q -n auto tests/lambdas/cluster_health/test_histories.py \
		tests/lambdas/cluster_power/test_schedule_histories.py \
		tests/lambdas/cluster_power/test_schedule_order_histories.py tests/lambdas/cluster_spend/test_histories.py

test-random: setup ## Look for new examples that break a property
	@pytest -q -n 2 --dist worksteal -m hypothesis --hypothesis-profile=random

live: setup ## Check the library on a real account, for about 1.40 USD (ARGS='--availability-zone us-east-1b'); see docs/first-deploy.md
	@python -m rehearsal.live $(ARGS)

lint: setup ## Check format, style, types and shell scripts
	@ruff format --check .
	@ruff check .
	@report=$$(mktemp)
	@trap 'rm -f "$$report"' EXIT
	@# Beside mypy, which takes as long with one core.
	@{
	@  pyright
	@  found=$$(pyright --verifytypes cdk_training_cluster --ignoreexternal 2>&1) || { grep -A2 ' error: ' <<< "$$found"; exit 1; }
	@} > "$$report" 2>&1 &
	@mypy || { kill $$!; exit 1; }
	@wait $$! || { cat "$$report" >&2; exit 1; }
	@git ls-files -z --cached --others --exclude-standard '*.sh' .ci/run | xargs -0 -r shellcheck

format: setup ## Format the code
	@ruff format .
	@ruff check --fix .

catalog: setup ## Regenerate the instance-type catalog (ARGS=--live: from the account of your credentials)
	@python scripts/generate_catalog.py $(ARGS)

prices: setup ## Refresh the price book from the AWS Price List and Spot prices, with your credentials (ARGS='--region us-east-1')
	@python scripts/generate_prices.py $(ARGS)

time-zones: setup ## Put the pinned wheel of tzdata where the power function reads it
	@rm -f lambdas/cluster_power/tzdata-*.whl
	@pip download --quiet --no-deps --dest lambdas/cluster_power -c constraints.txt tzdata

plans: setup ## Write what training-cluster plan says into README and docs/plan.md
	@python scripts/show_plans.py

schema: setup ## Regenerate the JSON Schema of a cluster file
	@training-cluster schema > clusters/cluster.schema.json

month: setup ## Simulate a month of 1,024 GPUs with published failure rates
	@PYTHONPATH=job python -m benchmarks.month

bench: setup ## Measure synthesis, the sweep for idle nodes and hydration, each beside something plainer
	@python -m benchmarks.bench $(ARGS)

$(VENV)/.release: $(VENV)/.installed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt --no-build-isolation -e '.[release]' 2>&1 | { grep -v '^WARNING: Location' || true; }
	@touch $@

release: setup $(VENV)/.release ## Build and check what is published into dist/: sdists, wheels, checksums, bills of materials
	@python scripts/make_release.py

release-templates: setup ## Keep the templates of the version in pyproject.toml, before it is released
	@python scripts/keep_templates.py

clean: ## Remove what the other targets made
	@rm -rf $(VENV) node_modules build dist cdk.out .mypy_cache .pytest_cache .ruff_cache
