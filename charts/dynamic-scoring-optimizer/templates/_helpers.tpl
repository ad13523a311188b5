{{- /* The name of all objects: two releases have two. */}}
{{- define "optimizer.name" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride }}
{{- else if contains (.Values.nameOverride | default .Chart.Name) .Release.Name }}
{{- .Release.Name | trunc 56 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (.Values.nameOverride | default .Chart.Name) | trunc 56 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "optimizer.account" -}}
{{- .Values.serviceAccount.name | default (include "optimizer.name" .) }}
{{- end }}

{{- /* "true" if callers may write. Values of 0.1.0 stay valid: mcp.allowWrites is the same switch, and readOnly wins. */}}
{{- define "optimizer.writes" -}}
{{- if and (or .Values.allowWrites .Values.mcp.allowWrites) (not .Values.readOnly) }}true{{ end }}
{{- end }}

{{- /* Where the certificate is from: see tls.source in values.yaml. */}}
{{- define "optimizer.tlsSource" -}}
{{- .Values.tls.source | default (ternary "Secret" "SelfSigned" (not (empty .Values.tls.secretName))) }}
{{- end }}

{{- define "optimizer.scheme" -}}
{{- ternary "http" "https" (eq (include "optimizer.tlsSource" .) "None") }}
{{- end }}

{{- /* The Secret with the certificate. */}}
{{- define "optimizer.tlsSecret" -}}
{{- if eq (include "optimizer.tlsSource" .) "SelfSigned" -}}
{{ include "optimizer.name" . }}-self-signed
{{- else -}}
{{ .Values.tls.secretName | default (printf "%s-tls" (include "optimizer.name" .)) }}
{{- end }}
{{- end }}

{{- /* The names by which clients in the hub and elsewhere call it, as JSON. */}}
{{- define "optimizer.names" -}}
{{- $names := list }}
{{- range $suffix := list "" ".NAMESPACE" ".NAMESPACE.svc" ".NAMESPACE.svc.cluster.local" }}
{{- $names = append $names (printf "%s%s" (include "optimizer.name" $) ($suffix | replace "NAMESPACE" $.Release.Namespace)) }}
{{- end }}
{{- concat $names (include "optimizer.hosts" . | fromJsonArray) | toJson }}
{{- end }}

{{- /* The public hosts, as JSON. Other Host headers than these and the Service's are refused. */}}
{{- define "optimizer.hosts" -}}
{{- $hosts := list }}
{{- if .Values.ingress.enabled }}
{{- $hosts = concat $hosts .Values.ingress.hosts }}
{{- end }}
{{- if .Values.httpRoute.enabled }}
{{- $hosts = concat $hosts .Values.httpRoute.hostnames }}
{{- end }}
{{- concat $hosts .Values.allowedHosts | uniq | toJson }}
{{- end }}
