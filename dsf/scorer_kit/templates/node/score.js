// SPDX-License-Identifier: Apache-2.0
// The score: what this scorer asks for, and a function of the series. This is the file to change.

export const CONFIG = {
  name: "my-scorer",
  description: "CPU cores that a pod used over the last hour",
  unit: "cores",
  source: {
    type: "Prometheus",
    host:
      process.env.PROMETHEUS_URL ||
      "http://kube-prometheus-kube-prome-prometheus.monitoring.svc:9090",
    path: "/api/v1/query_range",
    params: {
      query:
        "sum by (node, namespace, pod) " +
        '(rate(container_cpu_usage_seconds_total{container!="", pod!=""}[1m]))',
      range: 3600,
      step: 60,
    },
  },
  scoring: {
    path: "/scoring",
    params: { name: "my_scorer", interval: 30 },
    normalize: { min: 0, max: 2 },
  },
};

// Returns the mean of the finite samples of each series; a series without any has no result.
// A series has its labels in `metric`, and `values`, its samples as [unix seconds, text]. If the
// config has several `sources`, the label `__source__` is the name of the one it is from.
export function score(data) {
  return data.flatMap(({ metric, values }) => {
    const finite = values.map(([, text]) => Number(text)).filter(Number.isFinite);
    const mean = finite.reduce((sum, value) => sum + value / finite.length, 0);
    return finite.length > 0 ? [{ metric, score: mean }] : [];
  });
}
