# Works with Python 3.11+, make and git: the first target that needs it makes .venv and brings every tool into it.

.DEFAULT_GOAL := help

# PYTHON=python3.13 or PYTHON=/path/to/python: everything happens with that Python, in an environment of its own.
PYTHON ?=
VENV := .venv$(if $(PYTHON),/python$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'))
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# The Python that makes .venv is the first of these that is 3.11 or newer.
PYTHONS := $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11 python)
# The uv that is installed already, or else the one in constraints.txt, brought into .venv by pip.
UV := $(or $(shell command -v uv 2>/dev/null),$(BIN)/uv)
UV_PIP := $(UV) pip install --python $(BIN)/python --quiet

# make demo MODEL=openai:gpt-5.2
MODEL ?=
PROVIDER = $(firstword $(subst :, ,$(MODEL)))
# The extras of pydantic-ai-slim that are named after a provider; the other providers speak the protocol of openai.
EXTRAS := anthropic bedrock cerebras cohere crusoe google groq huggingface mistral openrouter snowflake xai zai
EXTRA ?= $(or $(filter $(PROVIDER) $(firstword $(subst -, ,$(PROVIDER))),$(EXTRAS)),openai)

.PHONY: help install demo sandbox browser screenshots test test-lowest test-prefect test-release lint format typecheck docs bench bench-peers published hostile all constraints clean

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

install: $(READY) ## Make .venv with the package and every tool in it

$(READY): pyproject.toml constraints.txt
	@if ! $(BIN)/python -c '' 2>/dev/null; then \
		for python in $(PYTHONS); do \
			if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
				echo "Making $(VENV) with $$("$$python" --version)"; \
				"$$python" -m venv --clear $(VENV) && exit 0; \
				echo "'$$python -m venv' failed; on Debian and Ubuntu it needs the package python3-venv." >&2; exit 1; \
			fi; \
		done; \
		echo "No Python 3.11 or newer found. Install one, or name it: make PYTHON=/path/to/python" >&2; exit 1; \
	fi
	@echo "Installing the versions in constraints.txt"
	@sed -n '/^uv==/,/[^\\]$$/p' constraints.txt > $(VENV)/uv.txt
	@sed '/^uv==/,/[^\\]$$/d' constraints.txt > $(VENV)/others.txt
	@[ -x $(UV) ] || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $(VENV)/uv.txt
	@$(UV_PIP) --require-hashes --requirement $(VENV)/others.txt || { \
		echo 'Trying without a network, with what uv has downloaded before'; \
		$(UV_PIP) --offline --require-hashes --requirement $(VENV)/others.txt; \
	}
	@$(UV_PIP) --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(READY) ## Watch an agent use skills, offline; MODEL=openai:gpt-5.2 for a real model
ifeq ($(MODEL),)
	@$(BIN)/python demo
else
	@echo "Making sure that pydantic-ai-slim[$(EXTRA)] is there for $(MODEL)"
	@$(UV_PIP) --constraint constraints.txt 'pydantic-ai-slim[$(EXTRA)]'
	@$(BIN)/python demo --model '$(MODEL)'
endif

# What is tested with programs of the system is tested for real: where one is missing, those tests fail. So it is
# installed where that needs no password; where it cannot be, the other tests run all the same.
# $(call system_package,program or file,package,what is tested with it)
define system_package
	@there() { [ -e $(1) ] || command -v $(1) >/dev/null 2>&1; }; \
	if [ "$$(uname -s)" = Linux ] && ! there; then \
		echo 'Installing $(2)'; \
		as_root() { if [ "$$(id -u)" = 0 ]; then env "$$@"; else sudo -n env "$$@"; fi; }; \
		apt() { as_root DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=60 "$$@"; }; \
		apt_install() { apt install -y --no-install-recommends $(2); }; \
		for tool in apt-get dnf apk; do \
			command -v $$tool >/dev/null 2>&1 || continue; \
			case $$tool in \
				apt-get) apt_install || { apt update && apt_install; } ;; \
				dnf) as_root dnf -q -y install $(2) ;; \
				apk) as_root apk add -q $(2) ;; \
			esac >/dev/null 2>&1 && break; \
		done; \
		there || \
			echo '$(2) could not be installed, so the tests of $(3) will fail. Install it by hand.' >&2; \
	fi
endef

sandbox: ## Install bubblewrap and the kernel's headers if they are missing: as root, or with a sudo that does not ask
	$(call system_package,bwrap,bubblewrap,the sandbox)
	$(call system_package,/usr/include/asm-generic/unistd.h,linux-libc-dev,its filter)

browser: ## Install Chromium if it is missing, in the same way
	$(call system_package,chromium,chromium,the browser)

# The hostile cases are held to figures, so they run without coverage, which makes Python slower; those that measure
# wall time, or what all processes of the machine use, run one after the other.
PARALLEL := --numprocesses=4 --dist=worksteal

test: $(READY) sandbox browser ## Run every test; the package's branches must be covered
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest --ignore=tests/hostile $(PARALLEL)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report
	@$(BIN)/pytest tests/hostile -m 'not alone' $(PARALLEL)
	@$(BIN)/pytest tests/hostile -m alone

# The rooms of the package, without what belongs to the newest versions: the documentation and figures.
CORE := capability catalog directory evals execution filesystem parsing project registries toolset types

test-lowest: $(VENV)/lowest/.ready sandbox ## Run the tests of the rooms with the lowest versions of the dependencies
	@$(VENV)/lowest/bin/pytest $(addprefix tests/,$(CORE)) --numprocesses=4 --dist=loadfile

test-prefect: $(VENV)/prefect/.ready ## Run an agent in a flow of Prefect
	@$(VENV)/prefect/bin/pytest tests/toolset/durable/test_prefect.py

# uv builds the wheel from the sdist, so that nothing is missing in the sdist. Both are installed into environments that
# have nothing else: the wheel as it is, the sdist with the extra `cli`.
RELEASE := $(VENV)/release
# $(call try_release,environment,distribution with extras,options of the smoke test)
define try_release
	@$(UV) venv --quiet --clear --python $(BIN)/python $(RELEASE)/$(1)
	@$(UV) pip install --quiet --python $(RELEASE)/$(1)/bin/python \
		--constraint constraints.txt --build-constraints constraints.txt $(2)
	@$(RELEASE)/$(1)/bin/python -I tests/release/smoke.py $(3)
	@echo 'The $(1) installs and works'
endef

test-release: $(READY) ## Build the sdist and the wheel, install each into an empty environment and try it
	@rm -rf $(RELEASE)
	@$(UV) build --quiet --no-build-isolation --python $(BIN)/python --out-dir $(RELEASE)/dist
	$(call try_release,wheel,$(RELEASE)/dist/*.whl,)
	$(call try_release,sdist,"$$(echo $(RELEASE)/dist/*.tar.gz)[cli]",--cli)

# Other environments: constraints.txt, with the entries of constraints-<name>.txt in place of those it has.
$(VENV)/%/.ready: $(READY) constraints-%.txt
	@echo 'Making $(@D) with the versions in constraints-$*.txt'
	@$(UV) venv --quiet --clear --python $(BIN)/python $(@D)
	@{ $(call lacking,constraints.txt,constraints-$*.txt,NAME); cat constraints-$*.txt; } > $(@D)/all.txt
	@$(UV) pip install --quiet --python $(@D)/bin/python --require-hashes --requirement $(@D)/all.txt
	@$(UV) pip install --quiet --python $(@D)/bin/python --no-deps --no-build-isolation --editable .
	@touch $@

# Examples in Markdown show what they print as `#> …`, which ruff would rewrite and the tests would not find.
FORMAT := $(BIN)/ruff format

lint: $(READY) ## Check style, formatting and the direction of imports
	@$(BIN)/ruff check .
	@$(FORMAT) --check .
	@$(BIN)/lint-imports --no-logo

format: $(READY) ## Format the code and mend what can be mended
	@$(BIN)/ruff check --fix .
	@$(FORMAT) .

typecheck: $(READY) ## Check types, strictly
	@$(BIN)/pyright --pythonpath $(BIN)/python

screenshots: $(READY) browser ## Take the pictures of the documentation again
	@$(BIN)/pytest -q tests/browser tests/docs/test_terminal.py --update-examples
	@$(BIN)/python docs/trace.py docs/images

# Without --quiet, which would hide the warnings from --strict too.
docs: $(READY) ## Build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(READY) sandbox ## Print the benchmark figures and write them into docs/benchmarks.md
	@$(BIN)/python -m benchmarks

bench-peers: $(READY) ## Measure other skills libraries beside this one, each installed into .venv/peers
	@$(BIN)/python -m benchmarks.peers

# make published COLLECTION=../skills; LOCAL=1 also runs the strangers' scripts without a sandbox; WITH=/path/to/python
# names the Python whose packages they may import.
published: $(READY) sandbox ## Try the scripts of a clone of published skills: make published COLLECTION=path
	@[ -n '$(COLLECTION)' ] || { echo 'Name the clone of a collection: make published COLLECTION=path' >&2; exit 2; }
	@$(BIN)/python -m benchmarks.published '$(COLLECTION)' $(if $(LOCAL),--local) $(if $(WITH),--python '$(WITH)')

hostile: $(READY) sandbox ## Run the hostile cases, print their figures and write the table into docs/security.md
	@HOSTILE_SOAK_SECONDS=60 $(BIN)/pytest tests/hostile --scoreboard --update-security

all: lint typecheck test test-lowest test-prefect test-release docs ## Everything CI runs

COMPILE = $(UV) pip compile pyproject.toml --all-extras --universal --python-version 3.11 --quiet \
	--generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links
# The entries of one file of constraints that another lacks, compared by their first lines or by the names in them.
# $(call lacking,file,other file,LINE or NAME)
lacking = awk -v by=$(3) '{ key = $$0; if (by == "NAME") sub(/==.*/, "", key) } \
	FNR == NR { if (/^[a-z0-9]/) there[key]; next } /^[a-z0-9]/ { wanted = !(key in there) } wanted' $(2) $(1)
# What another environment has instead of constraints.txt, which it keeps to as far as it can.
# $(call other_constraints,name,what to add to the command)
define other_constraints
	@cp constraints.txt $(VENV)/$(1).txt
	@$(COMPILE) --group dev --output-file $(VENV)/$(1).txt $(2) > /dev/null
	@{ \
		echo '# Where .venv/$(1) differs from constraints.txt. Made by `make constraints`.'; \
		$(call lacking,$(VENV)/$(1).txt,constraints.txt,LINE); \
	} > constraints.new && mv constraints.new constraints-$(1).txt
endef

UPGRADE ?= --upgrade

constraints: $(READY) ## Pin the newest versions that fit, and the lowest ones for test-lowest; UPGRADE= keeps pins that fit
	@cp constraints.txt $(VENV)/newest.txt
	@$(COMPILE) --group dev $(UPGRADE) --output-file $(VENV)/newest.txt > /dev/null
	@{ \
		echo '# Versions and hashes of everything development needs, for every supported Python. Made by `make constraints`.'; \
		cat $(VENV)/newest.txt; \
	} > constraints.new && mv constraints.new constraints.txt
	@$(COMPILE) --group models --resolution lowest-direct > $(VENV)/lowest-direct.txt
	$(call other_constraints,lowest,--constraint $(VENV)/lowest-direct.txt)
	$(call other_constraints,prefect,--group prefect)

clean: ## Remove .venv and everything made by the other targets
	rm -rf $(VENV) .coverage .hypothesis .import_linter_cache .pytest_cache .ruff_cache build dist site
