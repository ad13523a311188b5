# SPDX-License-Identifier: Apache-2.0
"""Run: python3 -m unittest"""

import unittest

from score import score


def series(*values):
    return {
        "metric": {"pod": "a"},
        "values": [[60 * index, value] for index, value in enumerate(values)],
    }


class Score(unittest.TestCase):
    def test_the_score_is_the_mean(self):
        self.assertEqual(score([series("1", "2")]), [{"metric": {"pod": "a"}, "score": 1.5}])

    def test_samples_that_are_not_finite_are_ignored(self):
        self.assertEqual(score([series("NaN", "3", "+Inf")])[0]["score"], 3)

    def test_a_series_without_a_finite_sample_has_no_result(self):
        self.assertEqual(score([series("NaN"), series()]), [])


if __name__ == "__main__":
    unittest.main()
