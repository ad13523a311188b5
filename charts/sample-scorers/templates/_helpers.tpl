{{- define "scorers.account" -}}
{{- .Values.serviceAccount.name | default .Release.Name }}
{{- end }}

{{- /* The NetworkPolicyPeers that call scorers in the cluster, unless networkPolicy.from names others. */}}
{{- define "scorers.callers" -}}
- podSelector: {}
{{- range $namespace := list "dynamic-scoring" "open-cluster-management" }}
- namespaceSelector:
    matchLabels: {kubernetes.io/metadata.name: {{ $namespace }}}
{{- end }}
{{- if or .Values.metrics.serviceMonitor.enabled .Values.metrics.podMonitor.enabled }}
- namespaceSelector: {}
{{- end }}
{{- end }}
