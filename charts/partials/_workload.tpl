{{- /*
What the charts have in common. The file is in charts/partials; each chart's templates link to it.
Partials that take more than the root take a dict; `root` is the chart's own `.`.
*/}}

{{- /* Labels that say what an object belongs to, on the hub or on a managed cluster. */}}
{{- define "dsf.standardLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: dynamic-scoring-framework
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "dsf.labels" -}}
{{ include "dsf.standardLabels" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* Labels and annotations of an object of the release; takes root, and labels and annotations of its own. */}}
{{- define "dsf.meta" -}}
labels:
  {{- include "dsf.labels" .root | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (.annotations | default dict) (.root.Values.commonAnnotations | default dict) }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Labels and annotations of a Pod; takes root, app and values (podLabels, podAnnotations). */}}
{{- define "dsf.podMeta" -}}
labels:
  app: {{ .app }}
  {{- include "dsf.standardLabels" .root | nindent 2 }}
  {{- with .values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (.values.podAnnotations | default dict) (.root.Values.commonAnnotations | default dict) }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Where a Pod runs, and what pulls its image. */}}
{{- define "dsf.scheduling" -}}
{{- $values := . }}
{{- range $field := list "imagePullSecrets" "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" "priorityClassName" }}
{{- with get $values $field }}
{{ dict $field . | toYaml }}
{{- end }}
{{- end }}
{{- end }}

{{- /* An image by digest, else by tag, else by the chart's appVersion; takes root and image. */}}
{{- define "dsf.image" -}}
{{- if .image.digest -}}
{{ .image.name }}@{{ .image.digest }}
{{- else -}}
{{ .image.name }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end }}
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

{{- /* Probes of /healthz and /readyz; takes port, scheme, alive and ready (other paths), and values (startupProbe, ...). */}}
{{- define "dsf.probes" -}}
{{- $port := dict "port" .port "scheme" (.scheme | default "HTTP") }}
{{- $health := dict "httpGet" (merge (dict "path" (.alive | default "/healthz")) $port) }}
{{- $ready := dict "httpGet" (merge (dict "path" (.ready | default "/readyz")) $port) }}
startupProbe: {{- merge (dict) $health .values.startupProbe | toYaml | nindent 2 }}
livenessProbe: {{- merge (dict) $health .values.livenessProbe | toYaml | nindent 2 }}
readinessProbe: {{- merge (dict) $ready .values.readinessProbe | toYaml | nindent 2 }}
{{- end }}

{{- /* TLS libraries take client certificates from files only. */}}
{{- define "dsf.tmpMount" -}}
- {name: tmp, mountPath: /tmp}
{{- end }}

{{- define "dsf.tmpVolume" -}}
- name: tmp
  emptyDir: {medium: Memory, sizeLimit: 1Mi}
{{- end }}

{{- /* A Pod of `helm test` that asks a URL; takes root, name, namespace, url, values (image, ...), and python. */}}
{{- define "dsf.testPod" -}}
apiVersion: v1
kind: Pod
metadata:
  name: {{ .name }}-test
  namespace: {{ .namespace }}
  {{- include "dsf.meta" (dict "root" .root "annotations" (dict "helm.sh/hook" "test" "helm.sh/hook-delete-policy" "before-hook-creation,hook-succeeded")) | nindent 2 }}
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  {{- include "dsf.scheduling" (omit .values "topologySpreadConstraints" "affinity") | nindent 2 }}
  containers:
    - name: ready
      image: {{ include "dsf.image" (dict "root" .root "image" .values.image) }}
      imagePullPolicy: {{ .values.image.pullPolicy }}
      command: [{{ .python | default "/opt/dsf/bin/python" }}, -c]
      args:
        # The certificate is not checked: the question is whether it serves, not who it is.
        - |
          import ssl, sys, urllib.request
          context = ssl._create_unverified_context()
          answer = urllib.request.urlopen(sys.argv[1], timeout=10, context=context)
          print(answer.status, answer.read().decode().strip())
        - {{ .url | quote }}
      resources:
        requests: {cpu: 10m, memory: 32Mi, ephemeral-storage: 1Mi}
        limits: {memory: 64Mi, ephemeral-storage: 8Mi}
      securityContext: {{- include "dsf.securityContext" .root | nindent 8 }}
{{- end }}
