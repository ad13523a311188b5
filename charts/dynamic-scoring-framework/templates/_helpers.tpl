{{- /* The namespace of the controller; see hubSetting.namespace in values.yaml. */}}
{{- define "dsf.hubNamespace" -}}
{{- if .Values.hubSetting.namespace }}
{{- .Values.hubSetting.namespace }}
{{- else if eq .Release.Namespace "default" -}}
open-cluster-management
{{- else }}
{{- .Release.Namespace }}
{{- end }}
{{- end }}

{{- /* The Deployments on the hub that have metrics and a readiness probe, as a list in YAML. */}}
{{- define "dsf.hubPrograms" -}}
[dynamic-scoring-controller{{ if .Values.hubSetting.dispatcher.enabled }}, dynamic-scoring-dispatcher{{ end }}]
{{- end }}

{{- define "dsf.controllerAccount" -}}
{{- .Values.hubSetting.resourceController.serviceAccount.name | default "dynamic-scoring-controller" }}
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

{{- /* "true" unless values switch the admission policies off; values of an earlier release lack it. */}}
{{- define "dsf.admission" -}}
{{- if dig "admissionPolicy" "enabled" true .Values.addOn }}true{{ end }}
{{- end }}
