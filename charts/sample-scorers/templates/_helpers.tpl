{{- define "scorers.account" -}}
{{- .Values.serviceAccount.name | default .Release.Name }}
{{- end }}
