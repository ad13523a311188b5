{{- /*
What the charts have in common. The file is in charts/partials; each chart's templates link to it.
Partials that take more than the root take a dict; `root` is the chart's own `.`.
*/}}

{{- /* Labels that say what an object belongs to, on the hub or on a managed cluster. Those of a user win. */}}
{{- define "dsf.standardLabels" -}}
{{- $standard := dict "app.kubernetes.io/name" .Chart.Name "app.kubernetes.io/instance" .Release.Name "app.kubernetes.io/version" .Chart.AppVersion "app.kubernetes.io/part-of" "dynamic-scoring-framework" }}
{{- merge (dict) (.Values.commonLabels | default dict) $standard | toYaml }}
{{- end }}

{{- define "dsf.labels" -}}
{{- $chart := printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- merge (include "dsf.standardLabels" . | fromYaml) (dict "app.kubernetes.io/managed-by" .Release.Service "helm.sh/chart" $chart) | toYaml }}
{{- end }}

{{- /*
Labels and annotations of an object of the release. Takes root, labels and annotations of its own, and inTemplate: OCM
makes the object, not helm.
*/}}
{{- define "dsf.meta" -}}
{{- $labels := include (ternary "dsf.standardLabels" "dsf.labels" (default false .inTemplate)) .root | fromYaml -}}
labels: {{- merge (dict) (.labels | default dict) $labels | toYaml | nindent 2 }}
{{- with merge (dict) (.annotations | default dict) (.root.Values.commonAnnotations | default dict) }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Labels and annotations of a Pod; takes root, app and values (podLabels, podAnnotations). */}}
{{- define "dsf.podMeta" -}}
{{- $labels := merge (dict "app" .app) (.values.podLabels | default dict) -}}
{{- include "dsf.meta" (dict "root" .root "inTemplate" true "labels" $labels "annotations" .values.podAnnotations) }}
{{- end }}

{{- /* Where a Pod runs, as whom, and what pulls its image; takes root and values. */}}
{{- define "dsf.scheduling" -}}
{{- $secrets := .values.imagePullSecrets | default list }}
{{- range dig "imagePullSecrets" list (.root.Values.global | default dict) }}
{{- $secrets = append $secrets (kindIs "string" . | ternary (dict "name" .) .) }}
{{- end }}
{{- with uniq $secrets }}
{{ dict "imagePullSecrets" . | toYaml }}
{{- end }}
{{- with .values.podSecurityContext }}
{{ dict "securityContext" . | toYaml }}
{{- end }}
{{- $values := .values }}
{{- range $field := list "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" "priorityClassName" }}
{{- with get $values $field }}
{{ dict $field . | toYaml }}
{{- end }}
{{- end }}
{{- end }}

{{- /*
An image by digest, else by tag, else by the chart's appVersion. Takes root, image, path (of that value), and name (the
chart's default of image.name). A registry replaces the one that the name begins with.
*/}}
{{- define "dsf.image" -}}
{{- $default := .name | default "quay.io/open-cluster-management/dynamic-scoring-framework" }}
{{- $name := .image.name | default $default }}
{{- if .image.repository }}
{{- if ne $name $default }}
{{- fail (printf "%s.repository: %s, but %s.name is %s. They are two spellings of one value: remove one." .path .image.repository .path $name) }}
{{- end }}
{{- $name = .image.repository }}
{{- end }}
{{- with .image.registry | default (dig "imageRegistry" "" (.root.Values.global | default dict)) }}
{{- $first := splitList "/" $name | first }}
{{- if and (contains "/" $name) (regexMatch "[.:]|^localhost$" $first) }}
{{- $name = trimPrefix (printf "%s/" $first) $name }}
{{- end }}
{{- $name = printf "%s/%s" . $name }}
{{- end }}
{{- if .image.digest -}}
{{ $name }}@{{ .image.digest }}
{{- else -}}
{{ $name }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end }}
{{- end }}

{{- /* The security context of a container; takes values (securityContext), whose fields win. */}}
{{- define "dsf.securityContext" -}}
{{- $context := dict "allowPrivilegeEscalation" false "capabilities" (dict "drop" (list "ALL")) "readOnlyRootFilesystem" true "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault") }}
{{- range $field, $value := .securityContext }}
{{- $context = set $context $field $value }}
{{- end }}
{{- toYaml $context }}
{{- end }}

{{- /* The arguments that each program takes; takes values (logLevel, extraArgs). */}}
{{- define "dsf.arguments" -}}
{{- with .logLevel }}
- --log-level={{ . }}
{{- end }}
{{- with .extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Replicas, by either spelling; takes values (replicas, replicaCount), path (of both) and default (of replicas). */}}
{{- define "dsf.replicas" -}}
{{- $replicas := int .values.replicas }}
{{- with int .values.replicaCount }}
{{- if and (ne $replicas (int $.default)) (ne $replicas .) }}
{{- fail (printf "%sreplicaCount: %d, but %sreplicas is %d. They are two spellings of one value: remove one." $.path . $.path $replicas) }}
{{- end }}
{{- $replicas = . }}
{{- end }}
{{- $replicas }}
{{- end }}

{{- /* Takes root, name (of the app, too), namespace, path (of the value) and values (a value `podDisruptionBudget`). */}}
{{- define "dsf.budget" -}}
{{- $most := toString .values.maxUnavailable }}
{{- $least := .values.minAvailable | default "" | toString -}}
{{- if and $least (ne $most "1") }}
{{- fail (printf "%s: minAvailable is %s and maxUnavailable is %s. Kubernetes takes one of them: remove the other." .path $least $most) }}
{{- end -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  namespace: {{ .namespace }}
  {{- include "dsf.meta" (dict "root" .root) | nindent 2 }}
spec:
  {{- if $least }}
  minAvailable: {{ .values.minAvailable }}
  {{- else }}
  maxUnavailable: {{ .values.maxUnavailable }}
  {{- end }}
  selector:
    matchLabels: {app: {{ .name }}}
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

{{- /*
Who reaches the Pods of an app. Takes root, name (of the app, too), namespace, port (by name), from (peers), anybody
(whoever they are), egress, and inTemplate: a managed cluster's objects of an add-on have no Pod of `helm test`.
*/}}
{{- define "dsf.networkPolicy" -}}
{{- $test := dict "podSelector" (dict "matchLabels" (dict "app" (printf "%s-test" .name))) }}
{{- $from := ternary (.from | default list) (concat (.from | default list) (list $test)) (default false .inTemplate) -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ .name }}
  namespace: {{ .namespace }}
  {{- include "dsf.meta" (dict "root" .root "inTemplate" .inTemplate) | nindent 2 }}
spec:
  podSelector:
    matchLabels: {app: {{ .name }}}
  policyTypes: [Ingress{{ if .egress }}, Egress{{ end }}]
  {{- with $from }}
  ingress:
    - ports:
        - {port: {{ $.port }}}
      {{- if not $.anybody }}
      from: {{- toYaml . | nindent 8 }}
      {{- end }}
  {{- end }}
  {{- with .egress }}
  egress: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- /* A container that is started again in its Pod takes back the Leases of the one before it; takes the variable. */}}
{{- define "dsf.identity" -}}
name: {{ . }}
valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- end }}

{{- /* TLS libraries take client certificates from files only. */}}
{{- define "dsf.tmpMount" -}}
- {name: tmp, mountPath: /tmp}
{{- end }}

{{- define "dsf.tmpVolume" -}}
- name: tmp
  emptyDir: {medium: Memory, sizeLimit: 1Mi}
{{- end }}

{{- /* A Pod of `helm test` that asks a URL; takes root, name, namespace, url, values (image, ...), imagePath and imageName (see
dsf.image), and python. */}}
{{- define "dsf.testPod" -}}
apiVersion: v1
kind: Pod
metadata:
  name: {{ .name }}-test
  namespace: {{ .namespace }}
  {{- include "dsf.meta" (dict "root" .root "labels" (dict "app" (printf "%s-test" .name)) "annotations" (dict "helm.sh/hook" "test" "helm.sh/hook-delete-policy" "before-hook-creation,hook-succeeded")) | nindent 2 }}
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  {{- include "dsf.scheduling" (dict "root" .root "values" (omit .values "topologySpreadConstraints" "affinity")) | nindent 2 }}
  containers:
    - name: ready
      image: {{ include "dsf.image" (dict "root" .root "image" .values.image "path" .imagePath "name" .imageName) }}
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
      securityContext: {{- include "dsf.securityContext" .values | nindent 8 }}
{{- end }}
