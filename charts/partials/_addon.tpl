{{- /* Name of the AddOnTemplate. A template must not change under the clusters that run it, so each version has its own. */}}
{{- define "dsf.addOnTemplate" -}}
{{ .Chart.Name }}-{{ .Chart.Version | replace "+" "-" }}
{{- end }}

{{- /* The fields of an AddOnDeploymentConfig that a value `addOn.deploymentConfig` sets. */}}
{{- define "dsf.deploymentConfig" -}}
{{- $config := . }}
{{- range $field := list "nodePlacement" "resourceRequirements" "registries" "proxyConfig" "customizedVariables" }}
{{- with get $config $field }}
{{ dict $field . | toYaml }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Where OCM installs an add-on; takes root, placement and namespace. */}}
{{- define "dsf.installStrategy" -}}
{{- $addOn := .root.Values.addOn -}}
type: {{ $addOn.installStrategy }}
{{- if eq $addOn.installStrategy "Placements" }}
placements:
  - name: {{ .placement }}
    namespace: {{ .namespace }}
  {{- with $addOn.extraPlacements }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* "true" if the release has the namespace's binding: nobody else has one. Takes root and namespace. */}}
{{- define "dsf.ownsBinding" -}}
{{- $owned := true }}
{{- with lookup "cluster.open-cluster-management.io/v1beta2" "ManagedClusterSetBinding" .namespace "global" }}
{{- $owner := .metadata.annotations | default dict }}
{{- $owned = and (eq (get $owner "meta.helm.sh/release-name") $.root.Release.Name) (eq (get $owner "meta.helm.sh/release-namespace") $.root.Release.Namespace) }}
{{- end }}
{{- if $owned }}true{{ end }}
{{- end }}

{{- /* The Placement of all clusters and its binding; takes root, placement, namespace and bind. */}}
{{- define "dsf.placement" -}}
{{- if eq .root.Values.addOn.installStrategy "Placements" }}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata:
  name: {{ .placement }}
  namespace: {{ .namespace }}
  {{- include "dsf.meta" (dict "root" .root) | nindent 2 }}
spec:
  clusterSets: [global]
  # A cluster that is unreachable keeps the add-on.
  tolerations:
    - {key: cluster.open-cluster-management.io/unreachable, operator: Exists}
    - {key: cluster.open-cluster-management.io/unavailable, operator: Exists}
{{- if and .bind (include "dsf.ownsBinding" .) }}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata:
  name: global
  namespace: {{ .namespace }}
  # Uninstalling the release keeps it: other add-ons and Placements of the namespace may use it.
  {{- include "dsf.meta" (dict "root" .root "annotations" (dict "helm.sh/resource-policy" "keep")) | nindent 2 }}
spec:
  clusterSet: global
{{- end }}
{{- end }}
{{- end }}
