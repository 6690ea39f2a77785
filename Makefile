# Everything that a contributor runs. `make` alone lists the targets.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# What to test and lint: make test PKG=./accounting/...
PKG ?= ./...
# More arguments for go test: make test ARGS='-run TestX -v'
ARGS ?=
# The race detector needs a C compiler; Go says 0 when there is none. It has everything built a second time, and tests take half as long again: a machine with fewer
# than four processors goes without it, unless RACE=1 says otherwise.
RACE ?= $(shell [ $$(getconf _NPROCESSORS_ONLN) -ge 4 ] && go env CGO_ENABLED || echo 0)
TIMEOUT ?= 15m
# How many tests of a package run at once. Most of them wait for a clock, a lease or a lock: a machine with two processors runs four.
PARALLEL ?= $(shell n=$$(getconf _NPROCESSORS_ONLN); echo $$((n < 4 ? 4 : n)))
FUZZTIME ?= 10s
# What a release calls itself; empty: what Go knows of the commit.
VERSION ?=

# Tools are built into the user's cache, one file a version, never into the checkout.
ifeq ($(shell uname -s),Darwin)
CACHE := $(HOME)/Library/Caches
else
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)
endif
TOOLBIN := $(CACHE)/daybook/bin
pinned = $(shell awk '$$1 == "$(1)" && $$2 ~ /^v/ { print $$2 }' tools/*/go.mod)
GOLANGCI      := $(TOOLBIN)/golangci-lint-$(call pinned,github.com/golangci/golangci-lint/v2)
WORKFLOWCHECK := $(TOOLBIN)/workflowcheck-$(call pinned,go.temporal.io/sdk/contrib/tools/workflowcheck)
SQLC          := $(TOOLBIN)/sqlc-$(call pinned,github.com/sqlc-dev/sqlc)
GOVULNCHECK   := $(TOOLBIN)/govulncheck-$(call pinned,golang.org/x/vuln)
HELM          := $(TOOLBIN)/helm-$(call pinned,helm.sh/helm/v3)
HELM_UNITTEST := $(TOOLBIN)/helm-unittest-$(call pinned,github.com/helm-unittest/helm-unittest)
KUBECONFORM   := $(TOOLBIN)/kubeconform-$(call pinned,github.com/yannh/kubeconform)
# The schemas of Kubernetes are those of the version that Helm's libraries are made for.
KUBERNETES          := $(patsubst v0.%,v1.%,$(call pinned,k8s.io/api))
PROMETHEUS_OPERATOR := v0.85.0
CHART_SCHEMAS       := $(CACHE)/daybook/chart-schemas/$(KUBERNETES)-$(PROMETHEUS_OPERATOR)
HUGO          := $(TOOLBIN)/hugo-$(call pinned,github.com/gohugoio/hugo)
GORELEASER    := $(TOOLBIN)/goreleaser-$(call pinned,github.com/goreleaser/goreleaser/v2)
CYCLONEDX     := $(TOOLBIN)/cyclonedx-gomod-$(call pinned,github.com/CycloneDX/cyclonedx-gomod)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# It compiles the whole program: without what the demo does not run it would be a fifth less (139 s
# of processor time of 178), and the next command would compile the rest.
.PHONY: demo
demo: ## start everything, post sample documents, show the result
	go run ./cmd/daybook demo

.PHONY: dev
dev: ## run PostgreSQL, Temporal and a worker until Ctrl-C
	go run ./cmd/daybook dev

.PHONY: build
build: ## build bin/daybook
	go build -ldflags "-X main.version=$(VERSION)" -o bin/daybook ./cmd/daybook

.PHONY: test
test: ## run the tests: PKG=./some/..., RACE=1, PARALLEL=4, ARGS='-run TestX'
ifneq ($(RACE),1)
	@echo "Without the race detector: RACE=0, fewer than four processors, or no C compiler."
endif
	go test $(if $(filter 1,$(RACE)),-race) -timeout $(TIMEOUT) -parallel $(PARALLEL) $(ARGS) $(PKG)

.PHONY: lint
lint: $(GOLANGCI) $(WORKFLOWCHECK) ## golangci-lint, which vets as well, and Temporal's workflowcheck
	$(GOLANGCI) run $(PKG)
	@if [ '$(PKG)' = './...' ]; then echo "golangci-lint in bench/"; cd bench && $(GOLANGCI) run ./...; fi
	@if [ -d workflows ] && ls workflows/*.go >/dev/null 2>&1; then \
		echo "workflowcheck ./workflows/..."; $(WORKFLOWCHECK) -config tools/lint/workflowcheck.yaml ./workflows/...; fi

.PHONY: format
format: $(GOLANGCI) ## format the Go code
	$(GOLANGCI) fmt

.PHONY: schema
schema: ## write migrations/schema.sql anew from the migrations
	@env -u DAYBOOK_DATABASE_URL go run ./cmd/daybook migrate dump > migrations/schema.sql.new
	@mv migrations/schema.sql.new migrations/schema.sql

.PHONY: schema-check
schema-check: ## fail when migrations/schema.sql is not what the migrations make
	@trap 'rm -f migrations/schema.sql.new' EXIT; \
	env -u DAYBOOK_DATABASE_URL go run ./cmd/daybook migrate dump > migrations/schema.sql.new; \
	if ! diff -u migrations/schema.sql migrations/schema.sql.new; then \
		echo "migrations/schema.sql is out of date: run make schema and commit the result" >&2; exit 1; fi

.PHONY: api
api: ## write api.txt, what the module exports, anew from the code
	@trap 'rm -f api.txt.new' EXIT; go run ./internal/dev/publicapi/apitxt > api.txt.new && mv api.txt.new api.txt

.PHONY: api-check
api-check: ## fail when api.txt is not what the code exports
	@trap 'rm -f api.txt.new' EXIT; \
	go run ./internal/dev/publicapi/apitxt > api.txt.new; \
	if ! diff -u api.txt api.txt.new; then \
		echo "api.txt is out of date: run make api, look at what changes for users, and commit the result" >&2; exit 1; fi

# Once a release, which testdata/ is named after; not after it.
.PHONY: keep
keep: ## write what users rely on of the release that is being made into testdata/
	go test -count=1 ./internal/store -run '^TestStatementsFitTheSchema$$' -keep
	go test -count=1 ./cmd/daybook -run '^(TestWhatOthersRelyOn|TestUpgradeOfAReleaseUnderLoad)$$' -keep

.PHONY: client
client: ## write the types of the TypeScript client anew from the HTTP API
	@trap 'rm -f clients/typescript/openapi.json' EXIT; go run ./cmd/daybook openapi > clients/typescript/openapi.json && \
	(cd clients/typescript && npm ci --ignore-scripts --no-audit --no-fund && npx openapi-typescript openapi.json -o src/schema.ts)

.PHONY: licences
licences: ## fail when the program links a library whose licence is not permissive
	@go run -C tools/security ./licences -C ../.. ./cmd/daybook

.PHONY: third-party
third-party: ## write bin/THIRD_PARTY_LICENSES, which belongs with the program
	@go run -C tools/security ./licences -C ../.. -write ../../bin/THIRD_PARTY_LICENSES ./cmd/daybook

# Not in CI: what it finds depends on the day.
.PHONY: vulncheck
vulncheck: $(GOVULNCHECK) ## ask for known holes that the program reaches
	@scripts/vulncheck.sh $(GOVULNCHECK) ./cmd/daybook

.PHONY: sqlc
sqlc: $(SQLC) ## write examples/sqlc/db anew from its queries
	cd examples/sqlc && $(SQLC) generate

.PHONY: sqlc-check
sqlc-check: $(SQLC) ## fail when examples/sqlc/db is not what sqlc makes of the queries
	@cd examples/sqlc && $(SQLC) diff || { echo "examples/sqlc/db is out of date: run make sqlc and commit the result" >&2; exit 1; }

.PHONY: test-alerts
test-alerts: ## check the Prometheus rules of deploy/, and that each alert fires and clears
	scripts/prometheus.sh promtool check rules $(wildcard deploy/prometheus/*.yml)
	scripts/prometheus.sh promtool check config deploy/compose/prometheus.yml
	awk '/^```/ { on = $$0 == "```yaml"; next } on' docs/metrics.md | scripts/prometheus.sh promtool check config /dev/stdin
	scripts/prometheus.sh promtool test rules $(wildcard deploy/prometheus/tests/*.yml)

CHART := deploy/helm/daybook
.PHONY: test-chart
test-chart: $(HELM) $(HELM_UNITTEST) $(KUBECONFORM) $(CHART_SCHEMAS) ## lint the Helm chart, test it, and check what it renders against Kubernetes' schemas
	$(foreach values,$(wildcard $(CHART)/ci/*.yaml),$(HELM) lint --strict --quiet --values $(values) $(CHART) &&) true
	$(HELM_UNITTEST) $(CHART)
	$(foreach values,$(wildcard $(CHART)/ci/*.yaml),$(HELM) template daybook $(CHART) --namespace books --kube-version $(KUBERNETES) --values $(values) | \
		$(KUBECONFORM) -strict -summary -schema-location '$(CHART_SCHEMAS)/{{.ResourceKind}}{{.KindSuffix}}.json' &&) true
	HELM=$(HELM) go test -C tools/chart -count=1 ./...

.PHONY: chart
chart: $(HELM) ## pack the Helm chart into bin/: VERSION=v1.2.3
	$(HELM) package $(CHART) --destination bin $(if $(VERSION),--version $(VERSION:v%=%) --app-version $(VERSION:v%=%))

.PHONY: test-moving
test-moving: ## move jobs over from River, graphile-worker and pg-boss by the statements of docs/from-*.md
	go test -C bench -count=1 ./moving/...

# Not in CI: Hugo takes minutes to build. bin/site may be a checkout of what is published: the versions in it stay.
SITE = $(or $(VERSION),main)
.PHONY: site
site: $(HUGO) ## build the documentation as a site into bin/site, and check its links: VERSION=v0.1.0
	@cd site && npm ci --silent --ignore-scripts --no-audit --no-fund
	@cd site && HUGO_PARAMS_VERSION='$(SITE)' $(HUGO) --quiet --panicOnWarning --noBuildLock --cleanDestinationDir --destination '$(CURDIR)/bin/site/$(SITE)'
	@go run ./internal/dev/site bin/site '$(SITE)'
	@echo "bin/site/index.html"

.PHONY: test-site
test-site: site ## build the documentation as a site, and read it in headless Chromium
	DAYBOOK_SITE='$(CURDIR)/bin/site/$(SITE)' scripts/browser.sh -tags browser,site -run '^TestSite' $(ARGS)

# Not in CI, which has one version: before a release, and after a change of SQL that depends on the version. By default the packages whose tests depend on what
# PostgreSQL does; PKG=./... runs all.
POSTGRES ?= 14 15 16 17 18
.PHONY: test-postgres
test-postgres: ## test on PostgreSQL 14 to 18: POSTGRES='14 18' PKG=./... ARGS='-run TestX'
	scripts/postgres.sh '$(POSTGRES)' go test -count=1 -timeout $(TIMEOUT) -parallel $(PARALLEL) $(ARGS) \
		$(if $(filter file,$(origin PKG)),./migrations ./queue/... ./jobs/... ./tasks/... ./internal/store/... ./internal/engine/... ./internal/ledger/... ./internal/moving/adopt,$(PKG))

# A failure names its seed and its fail file; in internal/dev/protocol/testdata/rapid, where go test looks, that file is a test from then on.
.PHONY: soak
soak: ## random interleavings against a model, until MINUTES (60) are over: SEED=n repeats a run
	@seed='$(SEED)'; seed="$${seed:-$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}"; echo "SEED=$$seed"; \
	go test -count=1 -v -timeout $(or $(MINUTES),60)m -run '^TestRandomInterleavings$$' ./internal/dev/protocol -rapid.checks=1000000000 -rapid.seed="$$seed"

.PHONY: test-browser
test-browser: ## test the console in headless Chromium: ARGS='-run TestX'
	scripts/browser.sh $(ARGS)

.PHONY: screenshots
screenshots: ## take the pictures of the console in docs/images anew
	SCREENSHOTS=1 scripts/browser.sh -run '^TestPictures'

.PHONY: fuzz
fuzz: ## run each fuzz test for FUZZTIME (10s)
	@grep -rlE '^func Fuzz' --include='*_test.go' . | sort | while read -r file; do \
		grep -oE '^func Fuzz[A-Za-z0-9_]*' "$$file" | while read -r _ name; do \
			echo "$$(dirname "$$file") $$name"; \
			go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "$$(dirname "$$file")" </dev/null; \
		done; \
	done

.PHONY: oracle
oracle: ## post Online Retail and let hledger, Ledger, Beancount and a script judge: ONLINE_RETAIL=path
	scripts/oracle/oracle.sh

.PHONY: oracle-months
oracle-months: ## keep the books of Online Retail month by month, and let hledger judge each: ONLINE_RETAIL=path
	scripts/oracle/months.sh

# The benchmarks: SCENARIO=drain,latency RUNS=3 SIZE=1000 SAMPLES=20; JSON=1 prints lines of JSON, WRITE=1 writes the rows to docs/performance.md.
# PART=text chooses among the parts of organizations, reclaim and faults. ALONE=1 leaves the peers out; BATCH=500 and CONCURRENCY=3 set what is otherwise looked for.
# HELD=2m shortens the steady loads, STATEMENTS=1 tells what their statements cost; RENDER=1 only writes docs/performance.md anew. bench/README.md lists the scenarios.
BENCH = $(if $(SCENARIO),-scenario '$(SCENARIO)') $(if $(PART),-part '$(PART)') $(if $(RUNS),-runs $(RUNS)) $(if $(SIZE),-size $(SIZE)) $(if $(SAMPLES),-samples $(SAMPLES)) \
	$(if $(filter 1,$(ALONE)),-alone) $(if $(BATCH),-batch $(BATCH)) $(if $(CONCURRENCY),-concurrency $(CONCURRENCY)) \
	$(if $(HELD),-held $(HELD)) $(if $(filter 1,$(STATEMENTS)),-statements) $(if $(filter 1,$(RENDER)),-render) $(if $(filter 1,$(JSON)),-json) $(if $(filter 1,$(WRITE)),-write)

.PHONY: bench
bench: ## measure beside other queues: SCENARIO=drain RUNS=3 SIZE=n SAMPLES=n HELD=2m JSON=1 WRITE=1
	@go build -C bench -o ../bin/bench .
	@bin/bench $(BENCH)

# Everything goes wrong at once, for MINUTES (without it 35 seconds), and a table says what came of it. SEED repeats a run, CLUSTER=plain or patroni, ASYNC=1
# replicates asynchronously, ONLY='kill,failover' chooses among the troubles. The rest of bin/chaos -help: ARGS.
.PHONY: chaos
chaos: build ## everything goes wrong at once: MINUTES=30 SEED=n CLUSTER=patroni ASYNC=1 ONLY='kill,failover'
	@go build -C bench -o ../bin/chaos ./chaos
	@bin/chaos $(if $(MINUTES),-lasting $(MINUTES)m) $(if $(SEED),-seed $(SEED)) $(if $(CLUSTER),-cluster $(CLUSTER)) \
		$(if $(filter 1,$(ASYNC)),-async) $(if $(ONLY),-only '$(ONLY)') $(ARGS)

.PHONY: bench-smoke
bench-smoke: ## a short run of every scenario that can be short
	@go build -C bench -o ../bin/bench .
	@bin/bench -smoke $(BENCH)

.PHONY: tools
tools: $(GOLANGCI) $(WORKFLOWCHECK) ## build the Temporal CLI and the linters into the user's cache
	go run ./internal/dev/devstack/temporalcli

# What it builds is what a release has (.goreleaser.yaml); nothing is published.
.PHONY: release-snapshot
release-snapshot: $(GORELEASER) $(CYCLONEDX) ## build a release into bin/release: programs, archives, packages, checksums, SBOMs
	@ln -sf $(notdir $(CYCLONEDX)) $(TOOLBIN)/cyclonedx-gomod
	PATH="$(TOOLBIN):$$PATH" $(GORELEASER) release --snapshot --clean $(ARGS)

.PHONY: bill
bill: $(CYCLONEDX) ## write the bill of materials of PROGRAM, of VERSION, into BILL, as a release has it
	@$(CYCLONEDX) bin -json -noserial -notimestamp -version $(VERSION) -output $(BILL) $(PROGRAM)

.PHONY: release-check
release-check: ## check what a release consists of, from a clean clone: SHORT=1 leaves out what needs minutes
	scripts/release-check.sh $(if $(filter 1,$(SHORT)),--short)

.PHONY: clean
clean: ## remove what make built in the checkout
	rm -rf bin migrations/schema.sql.new api.txt.new

$(GOLANGCI):
	@echo "Building golangci-lint; this takes about 2 minutes, once."
	@mkdir -p $(TOOLBIN)
	go build -C tools/lint -o $@.new github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	mv $@.new $@

$(WORKFLOWCHECK):
	@mkdir -p $(TOOLBIN)
	go build -C tools/lint -o $@.new go.temporal.io/sdk/contrib/tools/workflowcheck
	mv $@.new $@

$(GOVULNCHECK):
	@mkdir -p $(TOOLBIN)
	go build -C tools/security -o $@.new golang.org/x/vuln/cmd/govulncheck
	mv $@.new $@

$(SQLC):
	@echo "Building sqlc; this takes about 2 minutes, once."
	@mkdir -p $(TOOLBIN)
	CGO_ENABLED=0 go build -C tools/sqlc -o $@.new github.com/sqlc-dev/sqlc/cmd/sqlc
	mv $@.new $@

$(HELM):
	@echo "Building helm; this takes about 2 minutes, once."
	@mkdir -p $(TOOLBIN)
	CGO_ENABLED=0 go build -C tools/chart -o $@.new helm.sh/helm/v3/cmd/helm
	mv $@.new $@

$(HELM_UNITTEST):
	@mkdir -p $(TOOLBIN)
	CGO_ENABLED=0 go build -C tools/chart -o $@.new github.com/helm-unittest/helm-unittest/cmd/helm-unittest
	mv $@.new $@

$(KUBECONFORM):
	@mkdir -p $(TOOLBIN)
	CGO_ENABLED=0 go build -C tools/chart -o $@.new github.com/yannh/kubeconform/cmd/kubeconform
	mv $@.new $@

folder_of = $$(go mod download -json $(1) | awk -F '"' '$$2 == "Dir" { print $$4 }')
$(CHART_SCHEMAS):
	@rm -rf $@.new
	go run -C tools/chart ./schemas $@.new "$(call folder_of,k8s.io/kubernetes@$(KUBERNETES))" \
		"$(call folder_of,github.com/prometheus-operator/prometheus-operator@$(PROMETHEUS_OPERATOR))"
	mv $@.new $@

$(HUGO):
	@echo "Building Hugo; this takes about 3 minutes, once."
	@mkdir -p $(TOOLBIN)
	CGO_ENABLED=0 go build -C tools/hugo -o $@.new github.com/gohugoio/hugo
	mv $@.new $@

$(GORELEASER):
	@echo "Building goreleaser; this takes about 5 minutes, once."
	@mkdir -p $(TOOLBIN)
	go build -C tools/release -trimpath -ldflags '-s -w' -o $@.new github.com/goreleaser/goreleaser/v2
	mv $@.new $@

$(CYCLONEDX):
	@mkdir -p $(TOOLBIN)
	go build -C tools/release -o $@.new github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod
	mv $@.new $@
