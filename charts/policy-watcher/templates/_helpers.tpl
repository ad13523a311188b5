{{- /*
The objects of one watcher, on a managed cluster. Takes root, cluster (its name), namespace, and inTemplate: in an
AddOnTemplate no object can be in a namespace that OCM fills in, so there the right to list policies is one of the
ClusterRole.
*/}}
{{- define "watcher.objects" -}}
{{- $values := .root.Values }}
{{- $account := $values.serviceAccount.name | default "policy-watcher" }}
{{- if $values.serviceAccount.create }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $account }}
  namespace: {{ .namespace }}
  {{- include "dsf.meta" (dict "root" .root "inTemplate" .inTemplate "annotations" $values.serviceAccount.annotations) | nindent 2 }}
---
{{- end }}
{{- if $values.rbac.create }}
{{- if not .inTemplate }}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: policy-watcher
  namespace: {{ .cluster | quote }}
  {{- include "dsf.meta" (dict "root" .root "inTemplate" .inTemplate) | nindent 2 }}
rules:
  - apiGroups: [policy.open-cluster-management.io]
    resources: [policies]
    verbs: [list]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: policy-watcher
  namespace: {{ .cluster | quote }}
  {{- include "dsf.meta" (dict "root" .root "inTemplate" .inTemplate) | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: policy-watcher
subjects:
  - kind: ServiceAccount
    name: {{ $account }}
    namespace: {{ .namespace }}
---
{{- end }}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: policy-watcher
  {{- include "dsf.meta" (dict "root" .root "inTemplate" .inTemplate) | nindent 2 }}
rules:
  - apiGroups: [cluster.open-cluster-management.io]
    resources: [clusterclaims]
    resourceNames: [{{ $values.claimName }}]
    verbs: [get, patch]
  # RBAC can't limit a create by name.
  - apiGroups: [cluster.open-cluster-management.io]
    resources: [clusterclaims]
    verbs: [create]
  {{- if .inTemplate }}
  - apiGroups: [policy.open-cluster-management.io]
    resources: [policies]
    verbs: [list]
  {{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: policy-watcher
  {{- include "dsf.meta" (dict "root" .root "inTemplate" .inTemplate) | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: policy-watcher
subjects:
  - kind: ServiceAccount
    name: {{ $account }}
    namespace: {{ .namespace }}
---
{{- end }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: policy-watcher
  namespace: {{ .namespace }}
  {{- include "dsf.meta" (dict "root" .root "inTemplate" .inTemplate "labels" (dict "app" "policy-watcher")) | nindent 2 }}
spec:
  # One: two would write the same claim by two clocks.
  replicas: 1
  revisionHistoryLimit: {{ $values.revisionHistoryLimit }}
  strategy: {type: Recreate}
  selector:
    matchLabels: {app: policy-watcher}
  template:
    metadata:
      {{- include "dsf.podMeta" (dict "root" .root "app" "policy-watcher" "values" $values) | nindent 6 }}
    spec:
      serviceAccountName: {{ $account }}
      {{- include "dsf.scheduling" (dict "root" .root "values" $values) | nindent 6 }}
      containers:
        - name: policy-watcher
          image: {{ include "dsf.image" (dict "root" .root "image" $values.image "path" "image") }}
          imagePullPolicy: {{ $values.image.pullPolicy }}
          args:
            - policy-watcher
            - --metrics-bind-address=:8080
            {{- with include "dsf.arguments" $values | trim }}{{ nindent 12 . }}{{ end }}
          env:
            - {name: WATCH_NAMESPACE, value: {{ .cluster | quote }}}
            - {name: POLL_INTERVAL_SEC, value: {{ $values.pollIntervalSeconds | quote }}}
            - {name: STABLE_DURATION_SEC, value: {{ $values.stableDurationSeconds | quote }}}
            - {name: TARGET_CLAIM_NAME, value: {{ $values.claimName | quote }}}
            {{- with $values.extraEnv }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          ports:
            - {name: metrics, containerPort: 8080}
          {{- include "dsf.probes" (dict "port" "metrics" "values" $values) | nindent 10 }}
          resources: {{- toYaml $values.resources | nindent 12 }}
          securityContext: {{- include "dsf.securityContext" $values | nindent 12 }}
          {{- with $values.extraVolumeMounts }}
          volumeMounts: {{- toYaml . | nindent 12 }}
          {{- end }}
      {{- with $values.extraVolumes }}
      volumes: {{- toYaml . | nindent 8 }}
      {{- end }}
---
apiVersion: v1
kind: Service
metadata:
  name: policy-watcher
  namespace: {{ .namespace }}
  {{- include "dsf.meta" (dict "root" .root "inTemplate" .inTemplate "labels" (dict "app" "policy-watcher")) | nindent 2 }}
spec:
  selector: {app: policy-watcher}
  # A claim that can't be written makes the Pod unready. Its metrics must stay reachable nevertheless.
  publishNotReadyAddresses: true
  ports:
    - {name: metrics, port: 8080, targetPort: metrics}
{{- with $values.networkPolicy }}
{{- if .enabled }}
---
{{ include "dsf.networkPolicy" (dict "root" $.root "name" "policy-watcher" "namespace" $.namespace "port" "metrics" "from" .metricsFrom "egress" .egress "inTemplate" $.inTemplate) }}
{{- end }}
{{- end }}
{{- range $kind, $monitor := dict "ServiceMonitor" $values.metrics.serviceMonitor "PodMonitor" $values.metrics.podMonitor }}
{{- if $monitor.enabled }}
---
{{ include "dsf.monitor" (dict "root" $.root "inTemplate" $.inTemplate "kind" $kind "name" "policy-watcher" "app" "policy-watcher" "namespace" $.namespace "port" "metrics" "values" $values.metrics) }}
{{- end }}
{{- end }}
{{- end }}
