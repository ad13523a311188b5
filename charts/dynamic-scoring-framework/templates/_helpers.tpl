{{- define "dsf.labels" -}}
app.kubernetes.io/name: dynamic-scoring-framework
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "dsf.image" -}}
{{ .image.name }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end }}

{{- define "dsf.securityContext" -}}
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
readOnlyRootFilesystem: true
runAsNonRoot: true
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "dsf.probes" -}}
livenessProbe:
  httpGet: {path: /healthz, port: metrics}
  initialDelaySeconds: 10
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
{{- end }}

{{- /* TLS libraries take client certificates from files only. */}}
{{- define "dsf.tmpMount" -}}
- {name: tmp, mountPath: /tmp}
{{- end }}

{{- define "dsf.tmpVolume" -}}
- name: tmp
  emptyDir: {medium: Memory, sizeLimit: 1Mi}
{{- end }}

{{- /* The flags for the hosts and addresses that scorers may name; takes a value `scorers`. */}}
{{- define "dsf.destinationFlags" -}}
{{- with .allowedHosts }}
- --scorer-allowed-hosts={{ join "," . }}
{{- end }}
{{- with .deniedHosts }}
- --scorer-denied-hosts={{ join "," . }}
{{- end }}
{{- with .allowedCIDRs }}
- --scorer-allowed-cidrs={{ join "," . }}
{{- end }}
{{- with .deniedCIDRs }}
- --scorer-denied-cidrs={{ join "," . }}
{{- end }}
{{- end }}
