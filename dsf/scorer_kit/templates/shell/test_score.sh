#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run: sh test_score.sh
set -eu
cd "$(dirname "$0")"

expect() { # name, series as JSON, expected results as JSON
  found=$(printf '{"data": %s}' "$2" | sh score.sh | jq -c .results)
  if [ "$found" = "$3" ]; then
    echo "ok    $1"
  else
    echo "FAIL  $1: expected $3, got $found" >&2
    exit 1
  fi
}

expect 'the score is the mean' \
  '[{"metric": {"pod": "a"}, "values": [[0, "1"], [60, "2"]]}]' \
  '[{"metric":{"pod":"a"},"score":1.5}]'
expect 'samples that are not finite are ignored' \
  '[{"metric": {"pod": "a"}, "values": [[0, "NaN"], [60, "3"], [120, "+Inf"]]}]' \
  '[{"metric":{"pod":"a"},"score":3}]'
expect 'a series without a finite sample has no result' \
  '[{"metric": {"pod": "a"}, "values": [[0, "NaN"]]}, {"metric": {}, "values": []}]' \
  '[]'
