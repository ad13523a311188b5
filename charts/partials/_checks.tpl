{{- /*
Checks that end an installation with one message. They ask the cluster, so `helm template` and a
client-side dry run pass them.
*/}}

{{- /* "true" if helm is connected to a cluster. */}}
{{- define "dsf.connected" -}}
{{- if lookup "v1" "Namespace" "" "kube-system" }}true{{ end }}
{{- end }}

{{- /* Fails unless the cluster serves an API; takes root, api and hint. */}}
{{- define "dsf.requireAPI" -}}
{{- if and (include "dsf.connected" .root) (not (.root.Capabilities.APIVersions.Has .api)) }}
{{- fail (printf "this cluster does not serve %s: %s" .api .hint) }}
{{- end }}
{{- end }}

{{- /*
Fails if an object is another release's; takes root, apiVersion, kind, name, namespace, hint. Helm itself refuses one that
is of no release, and takes it over with --take-ownership. A template can't see that option.
*/}}
{{- define "dsf.requireFree" -}}
{{- $release := .root.Release }}
{{- with lookup .apiVersion .kind (.namespace | default "") .name }}
{{- $owner := .metadata.annotations | default dict }}
{{- $name := get $owner "meta.helm.sh/release-name" }}
{{- $namespace := get $owner "meta.helm.sh/release-namespace" }}
{{- $other := or (ne $name $release.Name) (ne $namespace $release.Namespace) }}
{{- if and $name $other (not $.root.Values.takeOwnership) }}
{{- $adopt := "If that release is gone, take the object over with --take-ownership --set takeOwnership=true. Helm then gives it the label app.kubernetes.io/managed-by=Helm and the annotations meta.helm.sh/release-name and meta.helm.sh/release-namespace." }}
{{- fail (printf "%s %s already exists and belongs to the release %s in the namespace %s. %s %s" $.kind $.name $name $namespace $.hint $adopt) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Fails if monitoring is enabled for the release and the Prometheus operator is missing. */}}
{{- define "dsf.requireMonitoring" -}}
{{- range $field := list "serviceMonitor" "podMonitor" "rules" }}
{{- if dig $field "enabled" false $.Values.metrics }}
{{- include "dsf.requireAPI" (dict "root" $ "api" "monitoring.coreos.com/v1" "hint" (printf "metrics.%s.enabled needs the Prometheus operator." $field)) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Fails if the values lack those of this version. Each template asks first, since helm may render it first. */}}
{{- define "dsf.requireValues" -}}
{{- if not (hasKey .Values "commonLabels") }}
{{- fail (printf "the values are those of an earlier version of the chart, without the defaults of %s: run helm upgrade with --reset-then-reuse-values instead of --reuse-values" .Chart.Version) }}
{{- end }}
{{- end }}
