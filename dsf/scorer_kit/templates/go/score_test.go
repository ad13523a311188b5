// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"testing"
)

func series(values ...float64) Series {
	found := Series{Metric: map[string]string{"pod": "a"}}
	for index, value := range values {
		found.Values = append(found.Values, Sample{float64(60 * index), value})
	}
	return found
}

func TestTheScoreIsTheMean(t *testing.T) {
	results := Score([]Series{series(1, 2)})
	if len(results) != 1 || results[0].Score != 1.5 || results[0].Metric["pod"] != "a" {
		t.Errorf("got %v", results)
	}
}

func TestSamplesThatAreNotFiniteAreIgnored(t *testing.T) {
	results := Score([]Series{series(math.NaN(), 3, math.Inf(1))})
	if len(results) != 1 || results[0].Score != 3 {
		t.Errorf("got %v", results)
	}
}

func TestASeriesWithoutAFiniteSampleHasNoResult(t *testing.T) {
	if results := Score([]Series{series(math.NaN()), series()}); len(results) != 0 {
		t.Errorf("got %v", results)
	}
}
