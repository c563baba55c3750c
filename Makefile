# SPDX-License-Identifier: GPL-2.0
# The front door. Everything is done by the scripts of setup/, guest/, kunit/
# and bench/; `make help` lists what there is.

BENCH_ARGS := $(if $(INSTRUMENT),--instruments $(INSTRUMENT)) $(if $(MODEL),--models $(MODEL)) \
	$(if $(MODES),--modes $(MODES)) $(if $(WORKLOADS),--workloads $(WORKLOADS)) \
	$(if $(REPETITIONS),--repetitions $(REPETITIONS)) $(if $(VARIATIONS),--variations $(VARIATIONS)) \
	$(if $(SEED),--seed $(SEED))

BUILD_DIR := $(or $(DONTCACHE_BUILD),build)

# make splits words at spaces, and so would the first of them be the place.
ifneq ($(words $(OUT)),$(if $(OUT),1,0))
$(error there is a space in OUT=$(OUT); next: name another directory)
endif

.DEFAULT_GOAL := help
.PHONY: help demo test fresh torture bench bench-full bench-compare mechanisms check mutants mutations kernel apply install uninstall series dist deb instructions clean distclean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  KERNEL_SRC=DIR   a Linux 7.3 tree of your own (only read); else one is downloaded"
	@echo "  CONFIG=FILE   deb: a configuration of your own"
	@echo "  KDIR=DIR BRANCH=name   install, uninstall: the tree that is changed, and its new branch"
	@echo "  RUSTC= RUST_LIB_SRC= BINDGEN= CARGO=   instead of what is found"
	@echo "  DONTCACHE_CACHE=DIR DONTCACHE_BUILD=DIR JOBS=N   where and how to build"
	@echo "  modes: demo has buffered dontcache direct lazy; bench c kick flush lazy paced lazyflag buffered direct ..."
	@echo "  demo: POLICY=paced|flush|lazy|kick MODES=a,b WORKLOADS=a,b SEED=n OUT=DIR"
	@echo "  test: TESTS='check front install host um lab objects x86 guest hotunplug off', by name also"
	@echo "        docs page smp kunitconfig ci kasan rt hz100 upstream deb series reproducible mutations; TEST_MINUTES=n (what comes later is skipped)"
	@echo "  fresh: FRESH_DIR=DIR keeps the machine there, or takes it from there"
	@echo "  torture: MINUTES=n ENGINES='rust-torture rust-kcsan' SEED=n"
	@echo "  mechanisms: SEEDS=n (boots of each kernel) VARIANTS='paced thread' OUT=DIR"
	@echo "  bench: INSTRUMENT=virtual,smp,count MODEL=a,b MODES=a,b WORKLOADS=a,b REPETITIONS=n VARIATIONS=n SEED=n OUT=DIR"
	@echo "         WORKLOADS=list, MODEL=list and MODES=list are refused, with what there is"
	@echo "  bench-compare: A=x/lab.json B=y/lab.json MARGIN=0.02 (a change of less than 2 % is none)"

demo: ## build, boot, and compare four modes of I/O on XFS (9 min, then 1)
	$(foreach name,INSTRUMENT MODEL REPETITIONS VARIATIONS,$(if $($(name)),$(error make demo has no $(name)=; next: make bench $(name)=$($(name)))))
	@setup/demo.sh $(abspath $(or $(OUT),$(BUILD_DIR)/demo)) "$(POLICY)" "$(MODES)" "$(WORKLOADS)" \
		$(if $(SEED),--seed $(SEED))

bench: ## the lab: which engine and which policy is better at what (builds of an hour, then 15 min)
	@setup/bench.sh $(abspath $(or $(OUT),$(BUILD_DIR)/bench)) $(BENCH_ARGS)

bench-full: ## the lab with all devices, modes and workloads, in real time too (hours)
	@setup/bench.sh $(abspath $(or $(OUT),$(BUILD_DIR)/bench-full)) --full $(BENCH_ARGS)

bench-compare: ## what got better or worse from A=x/lab.json to B=y/lab.json
	@setup/compare.sh "$(A)" "$(B)" $(if $(MARGIN),--margin "$(MARGIN)")

mechanisms: ## what each mechanism of the engines brings, in counts (builds of half an hour, then 10 min)
	@setup/mechanisms.sh $(abspath $(or $(OUT),$(BUILD_DIR)/mechanisms)) "$(or $(SEEDS),3)" $(VARIANTS)

test: ## host, KUnit, guests on UML and QEMU, lab, objects, hot-unplug (hours; TESTS='check um' is a part)
	@setup/test.sh $(TESTS)

fresh: ## make demo and make test on a machine with nothing but make and git (debootstrap; root)
	@setup/fresh.sh

torture: ## finish bios in all contexts under CPU hotplug, MINUTES=n on a kernel with KASAN and lockdep
	@setup/torture.sh "$(or $(MINUTES),30)" $(ENGINES)

check: ## rustfmt, clippy, W=1, sparse, clang's analyzer, checkpatch --strict, shellcheck, ruff
	@setup/check.sh

mutants: ## break the pure files in every way that cargo-mutants knows, and see a test fail (10 min)
	@setup/mutants.sh

mutations: ## put faults back into the kernel that it has had, and see a test fail (20 min)
	@setup/mutations.sh $(MUTATIONS)

install: ## put the overlay into a kernel tree of your own, KDIR=DIR: a branch, or files without git
	@setup/install.sh "$(KDIR)" "$(BRANCH)"

uninstall: ## take it out again, KDIR=DIR
	@setup/uninstall.sh "$(KDIR)" "$(BRANCH)"

series: ## write the overlay as patches for git am, and as one patch, in build/series or OUT=DIR
	@setup/make-series.sh $(abspath $(or $(OUT),$(BUILD_DIR)/series))

dist: ## a tarball of what is committed, in build/ or OUT=DIR
	@setup/dist.sh $(abspath $(or $(OUT),$(BUILD_DIR)/dist))

deb: ## Debian packages of a kernel that boots in virtual machines, or of CONFIG=FILE
	@setup/deb.sh $(abspath $(or $(OUT),$(BUILD_DIR)/deb/packages)) "$(CONFIG)"

kernel: ## build the UML kernel of the demo and print where it is
	@setup/overlay.sh
	@setup/kernel.sh um rust

apply: ## apply the overlay to a copy of the kernel source and print where it is
	@setup/overlay.sh
	@echo $(BUILD_DIR)/linux

instructions: ## count the instructions of the hot path, C and Rust, in x86 objects
	@setup/instructions.sh

clean: ## remove what was built
	@setup/clean.sh build

distclean: ## remove the cache as well: sources, tools, ccache
	@setup/clean.sh all
