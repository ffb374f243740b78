#!/usr/bin/env bash
# The gate: everything a change must pass, the same here and in CI. Usage: tools/gate.sh [all|test|lint]
set -euo pipefail
cd "$(dirname "$0")/.."
part=${1:-all}
step() { printf '\n== %s\n' "$*"; "$@"; }

step npx tsc -b
if [ "$part" != test ]; then
  step npx prettier --check .
  step npx oxlint --type-aware
  step npx knip
fi
if [ "$part" != lint ]; then
  step npx vitest run
fi
