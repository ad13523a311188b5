// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import test from "node:test";

import { score } from "./score.js";

const series = (...values) => ({
  metric: { pod: "a" },
  values: values.map((value, index) => [60 * index, value]),
});

test("the score is the mean", () => {
  assert.deepEqual(score([series("1", "2")]), [{ metric: { pod: "a" }, score: 1.5 }]);
});

test("samples that are not finite are ignored", () => {
  assert.equal(score([series("NaN", "3", "+Inf")])[0].score, 3);
});

test("a series without a finite sample has no result", () => {
  assert.deepEqual(score([series("NaN"), series()]), []);
});
