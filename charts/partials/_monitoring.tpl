{{- /*
Objects of the Prometheus operator, and dashboards for Grafana's sidecar. Each takes a dict: root,
name, namespace, app (the Pods' label), port (of the metrics, by name), scheme, tlsConfig, values (a value `metrics`).
*/}}

{{- define "dsf.scrape" -}}
- port: {{ .port }}
  path: /metrics
  scheme: {{ .scheme | default "http" }}
  {{- with .monitor.tlsConfig | default (ternary .tlsConfig dict (empty .monitor.namespace)) }}
  tlsConfig: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .monitor.interval }}
  interval: {{ . }}
  {{- end }}
  {{- with .monitor.scrapeTimeout }}
  scrapeTimeout: {{ . }}
  {{- end }}
  {{- with .monitor.relabelings }}
  relabelings: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .monitor.authorization }}
  authorization: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- /* Takes kind as well, ServiceMonitor or PodMonitor, and inTemplate. */}}
{{- define "dsf.monitor" -}}
{{- $monitor := ternary .values.serviceMonitor .values.podMonitor (eq .kind "ServiceMonitor") }}
{{- $endpoints := ternary "endpoints" "podMetricsEndpoints" (eq .kind "ServiceMonitor") }}
apiVersion: monitoring.coreos.com/v1
kind: {{ .kind }}
metadata:
  name: {{ .name }}
  namespace: {{ $monitor.namespace | default .namespace }}
  {{- include "dsf.meta" (dict "root" .root "labels" $monitor.labels "inTemplate" .inTemplate) | nindent 2 }}
spec:
  {{- if $monitor.namespace }}
  namespaceSelector:
    matchNames: [{{ .namespace }}]
  {{- end }}
  selector:
    matchLabels: {app: {{ .app }}}
  {{ $endpoints }}: {{- include "dsf.scrape" (merge (dict "monitor" $monitor) .) | nindent 4 }}
{{- end }}

{{- /* The PrometheusRules in files/rules and the dashboards in files/dashboards. */}}
{{- define "dsf.rulesAndDashboards" -}}
{{- if .values.rules.enabled }}
{{- range $path, $_ := .root.Files.Glob "files/rules/*.yaml" }}
---
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: {{ $.name }}-{{ base $path | trimSuffix ".yaml" }}
  namespace: {{ $.namespace }}
  {{- include "dsf.meta" (dict "root" $.root "labels" $.values.rules.labels) | nindent 2 }}
spec: {{- $.root.Files.Get $path | nindent 2 }}
{{- end }}
{{- end }}
{{- if .values.dashboards.enabled }}
{{- range $path, $_ := .root.Files.Glob "files/dashboards/*.json" }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $.name }}-{{ base $path | trimSuffix ".json" }}
  namespace: {{ $.namespace }}
  {{- $board := $.values.dashboards }}
  {{- include "dsf.meta" (dict "root" $.root "labels" $board.labels "annotations" $board.annotations) | nindent 2 }}
data:
  {{ base $path }}: {{ $.root.Files.Get $path | toJson }}
{{- end }}
{{- end }}
{{- end }}
