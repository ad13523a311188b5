// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"os"
)

// Config is what this scorer asks for. This is the file to change.
var Config = map[string]any{
	"name":        "my-scorer",
	"description": "CPU cores that a pod used over the last hour",
	"unit":        "cores",
	"source": map[string]any{
		"type": "Prometheus",
		"host": environment("PROMETHEUS_URL", "http://kube-prometheus-kube-prome-prometheus.monitoring.svc:9090"),
		"path": "/api/v1/query_range",
		"params": map[string]any{
			"query": `sum by (node, namespace, pod) (rate(container_cpu_usage_seconds_total{container!="", pod!=""}[1m]))`,
			"range": 3600,
			"step":  60,
		},
	},
	"scoring": map[string]any{
		"path":      "/scoring",
		"params":    map[string]any{"name": "my_scorer", "interval": 30},
		"normalize": map[string]any{"min": 0, "max": 2},
	},
}

// Score returns the mean of the finite samples of each series; a series without any has no result.
// If the config has several "sources", the label "__source__" of Metric is the name of the one that
// the series is from.
func Score(data []Series) []Result {
	results := []Result{}
	for _, series := range data {
		sum, count := 0.0, 0
		for _, sample := range series.Values {
			if !math.IsNaN(sample.Value) && !math.IsInf(sample.Value, 0) {
				sum += sample.Value
				count++
			}
		}
		if mean := sum / float64(count); count > 0 && !math.IsInf(mean, 0) {
			results = append(results, Result{series.Metric, mean})
		}
	}
	return results
}

func environment(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}
