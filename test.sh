#!/usr/bin/env bash
# Everything that is checked before a change goes in. `./test.sh help` says more.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
root=$PWD

usage() {
  cat <<'END'
usage: ./test.sh [command]

  (none), all          what a change has to pass: checks, then unit
  checks               format, vet, staticcheck, modernizers, go.mod, build
  unit [PACKAGE...]    all tests, or the packages', with the race detector; those of
                       the dashboard need chromium, and leave pictures of its pages
                       in web/browser/_artifacts
  bench [PACKAGE...]   the benchmarks
  fuzz [TIME]          each fuzz test for TIME (default 10s)
  faults [SEED]        1,000,000 jobs under 200 faults, then failovers: half an
                       hour; KEYFUSE_FAULT_… changes it, see internal/faults
  help                 this text

Works from any directory, as ./test.sh or by its path. Needs Go, a C compiler
for the race detector, and redis-server; as root on Debian or Ubuntu, what is
missing of the last two is installed. Without redis-server the tests that need
one are skipped, and the summary says so; with KEYFUSE_REQUIRE_REDIS=1 that is
a failure instead. Likewise for chromium and KEYFUSE_REQUIRE_BROWSER=1.

Formatter and linter are built from tools/go.mod at their versions there; the
first time that takes a minute or two.
END
}

# ── What is missing ──────────────────────────────────────────────────────────

have() { command -v "$1" >/dev/null 2>&1; }

# need COMMAND BREW PACKAGE...: installs the Debian packages if the command is
# missing and this may install any; else says what to install, and fails.
need() {
  local command=$1 brew=$2
  shift 2
  have "$command" && return
  if [[ $(id -u) == 0 ]] && have apt-get; then
    heading "install $*"
    apt-get update -qq &&
      DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null &&
      have "$command" && return
  fi
  echo "$command is missing. Debian, Ubuntu: apt-get install $*. macOS: $brew" >&2
  return 1
}

need_go() {
  have go && return
  echo "go is missing: install Go 1.26 or newer from https://go.dev/dl/" >&2
  exit 1
}

need_redis() {
  if need redis-server "brew install redis" redis-server; then
    export KEYFUSE_REQUIRE_REDIS=1 # it is here, so no test may skip for want of it
  elif [[ ${KEYFUSE_REQUIRE_REDIS:-} == 1 ]]; then
    failed+=("redis-server is missing")
  else
    skipped+=("the tests on a real redis-server")
  fi
}

need_browser() {
  if need chromium "brew install chromium" chromium; then
    export KEYFUSE_REQUIRE_BROWSER=1
  elif [[ ${KEYFUSE_REQUIRE_BROWSER:-} == 1 ]]; then
    failed+=("chromium is missing")
  else
    skipped+=("the tests of the dashboard in a browser")
  fi
}

# ── Running steps ────────────────────────────────────────────────────────────

passed=0
failed=()
skipped=()

heading() { printf '\n── %s\n' "$*"; }

# step NAME COMMAND...: runs a step; the ones after it run whatever comes of it.
step() {
  local name=$1
  shift
  heading "$name"
  if "$@"; then
    passed=$((passed + 1))
  else
    failed+=("$name")
  fi
}

summary() {
  local joined
  printf '\n'
  if ((${#skipped[@]})); then
    printf -v joined '%s, ' "${skipped[@]}"
    echo "SKIPPED: ${joined%, }"
  fi
  if ((${#failed[@]})); then
    printf -v joined '%s, ' "${failed[@]}"
    echo "FAILED after ${SECONDS}s: ${joined%, }"
    exit 1
  fi
  echo "ok: $passed steps passed in ${SECONDS}s"
}

# ── Steps ────────────────────────────────────────────────────────────────────

# files PATTERN: tracked and new files that are not ignored; outside a git
# checkout, all files.
files() {
  local file
  if [[ -e .git ]] && git rev-parse --git-dir >/dev/null 2>&1; then
    git ls-files -co --exclude-standard -- "$1"
  else
    find . -name "$1" -not -path '*/.*'
  fi | while IFS= read -r file; do
    if [[ -f $file ]]; then printf '%s\n' "$file"; fi # not if deleted since
  done
}

tool() { go tool -modfile="$root/tools/go.mod" "$@"; }

# each_module COMMAND...: runs it in every module, and fails if it fails in one.
each_module() {
  local mod status=0
  for mod in $(files '*go.mod'); do
    (cd "$(dirname "$mod")" && "$@") || status=1
  done
  return $status
}

# with_code COMMAND...: runs it if the module here has packages; that of the
# tools has none.
with_code() {
  if [[ -n $(go list ./... 2>/dev/null) ]]; then "$@"; fi
}

check_format() {
  local bad
  bad=$(files '*.go' | tr '\n' '\0' | xargs -0 go tool -modfile=tools/go.mod gofumpt -l) || return
  [[ -z $bad ]] && return
  printf '%s\n' "$bad" "format with: go tool -modfile=tools/go.mod gofumpt -w FILE..."
  return 1
}

check_modernizers() {
  each_module with_code go fix -diff ./... && return
  echo "apply with: go fix ./..."
  return 1
}

check_tidy() {
  each_module go mod tidy -diff && return
  echo "apply with: go mod tidy"
  return 1
}

checks() {
  step "format (gofumpt)" check_format
  step "go vet" each_module with_code go vet ./...
  step "staticcheck" each_module with_code tool staticcheck ./...
  step "modernizers (go fix)" check_modernizers
  step "go.mod and go.sum (go mod tidy)" check_tidy
  step "build" each_module with_code go build ./...
}

unit() {
  need_redis
  if ! need cc "xcode-select --install" gcc libc6-dev; then
    failed+=("a C compiler, for the race detector, is missing")
    return
  fi
  if (($#)); then
    step "tests" go test -race -timeout 10m "$@"
  else
    need_browser
    step "tests" each_module with_code go test -race -timeout 10m -artifacts ./...
  fi
}

# packages_with PREFIX [PACKAGE...]: packages with test functions named so.
packages_with() {
  local prefix=$1 package dir
  shift
  go list -f '{{.ImportPath}} {{.Dir}}' "${@:-./...}" | while read -r package dir; do
    if grep -qs "^func $prefix" "$dir"/*_test.go; then printf '%s\n' "$package"; fi
  done
}

bench() {
  local packages
  need_redis
  packages=$(packages_with Benchmark "$@")
  if [[ -z $packages ]]; then
    failed+=("no benchmarks in ${*:-any package}")
    return
  fi
  # shellcheck disable=SC2086 # one word a package
  step "benchmarks" go test -run '^$' -bench . -benchmem -timeout 60m $packages
}

fuzz() {
  local package name
  need_redis
  for package in $(packages_with Fuzz); do
    for name in $(go test -list '^Fuzz' "$package" | grep '^Fuzz'); do
      step "$name in $package" go test -run '^$' -fuzz "^$name\$" -fuzztime "${1:-10s}" "$package"
    done
  done
}

# A run that fails keeps its records, and says where.
faults() {
  local run=(go test ./internal/faults -count=1 -timeout 3h -v -run)
  need_redis
  export KEYFUSE_FAULT_SEED=${1:-${KEYFUSE_FAULT_SEED:-$RANDOM$RANDOM}}
  export KEYFUSE_FAULT_LEASE=${KEYFUSE_FAULT_LEASE:-15s} KEYFUSE_FAULT_DAEMONS=${KEYFUSE_FAULT_DAEMONS:-3}
  local jobs=${KEYFUSE_FAULT_JOBS:-1000000} faults=${KEYFUSE_FAULT_FAULTS:-200}
  export KEYFUSE_FAULT_JOBS=$jobs KEYFUSE_FAULT_FAULTS=$faults
  step "faults, seed $KEYFUSE_FAULT_SEED" "${run[@]}" '^TestFaults$'
  KEYFUSE_FAULT_JOBS=$((jobs / 20 + 1)) KEYFUSE_FAULT_FAULTS=$((faults / 10 + 1))
  step "faults with Sentinel" "${run[@]}" '^TestFaultSentinel$'
  step "faults of a cluster" "${run[@]}" '^TestFaultCluster$'
}

what=${1:-all}
if (($#)); then shift; fi
case $what in
  all)
    need_go
    checks
    unit "$@"
    ;;
  checks | unit | bench | fuzz | faults)
    need_go
    "$what" "$@"
    ;;
  help | -h | --help)
    usage
    exit
    ;;
  *)
    usage >&2
    exit 2
    ;;
esac
summary
