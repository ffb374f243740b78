#!/usr/bin/env bash
# The gate: everything a change must pass, the same here (npm test) and in CI. Usage: tools/gate.sh [all|lint|tests]
# With CI=true a test whose peer program is missing fails, and the slow checks run too.
set -euo pipefail
cd "$(dirname "$0")/.."
part=${1:-all}
step() { printf '\n== %s\n' "$*"; "$@"; }

step npx tsc -b
if [ "$part" != tests ]; then
  step npx prettier --check --log-level warn .
  step npx oxlint --type-aware
  step npx knip
fi
if [ "$part" != lint ]; then
  step npx vitest run
  step node --enable-source-maps dist/sim/cli/main.js
  # Every scenario of worlds, briefly.
  step node --enable-source-maps dist/sim/cli/main.js --all --seeds 4
  if [ "${CI:-}" = true ]; then step node --enable-source-maps dist/tools/mutants/main.js --ci; fi
fi
