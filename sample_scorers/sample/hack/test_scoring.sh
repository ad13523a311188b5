#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Posts a file to a scorer's /scoring and prints the answer.
if [ $# -ne 2 ]; then
  echo "usage: $0 URL FILE    for example: $0 http://localhost:8000 data.json" >&2
  exit 2
fi
if [ ! -r "$2" ]; then
  echo "$0: cannot read $2" >&2
  exit 2
fi
exec curl --silent --show-error --fail-with-body \
  --header 'Content-Type: application/json' --data-binary "@$2" "${1%/}/scoring"
