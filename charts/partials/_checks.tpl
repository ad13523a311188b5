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
{{- with and (.root.Capabilities.APIVersions.Has .apiVersion) (lookup .apiVersion .kind (.namespace | default "") .name) }}
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

{{- /* Fails if a namespace that a value names is missing, before anything is made; takes root, value, namespaces, fixed: no value names it. */}}
{{- define "dsf.requireNamespaces" -}}
{{- if include "dsf.connected" .root }}
{{- range .namespaces }}
{{- if not (or (eq . $.root.Release.Namespace) (lookup "v1" "Namespace" "" .)) }}
{{- fail (printf "%s: the namespace %s does not exist. Create it with kubectl create namespace %s%s." $.value . . (ternary "" ", or name another one" (default false $.fixed))) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /*
Fails if the cluster's CRDs lack a field of those in files/crds; takes root, and missing: what to do without a CRD, or
empty if the chart works without.
*/}}
{{- define "dsf.requireCRDs" -}}
{{- if include "dsf.connected" .root }}
{{- range $path, $_ := .root.Files.Glob "files/crds/*.yaml" }}
{{- $wanted := $.root.Files.Get $path | fromYaml }}
{{- $found := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $wanted.metadata.name }}
{{- if $found }}
{{- range $version := $wanted.spec.versions }}
{{- $served := dict }}
{{- range $found.spec.versions }}
{{- if and .served (eq .name $version.name) }}
{{- $served = . }}
{{- end }}
{{- end }}
{{- $lacks := include "dsf.lackingFields" (dict "found" (dig "schema" "openAPIV3Schema" dict $served) "wanted" $version.schema.openAPIV3Schema "path" "") | splitList "\n" | compact }}
{{- if $lacks }}
{{- fail (printf "crds.install is false, and the CRD %s on this cluster is of another version: it lacks %s. Bring it up to date with dsf crds | kubectl apply -f -, or set crds.install=true." $wanted.metadata.name (join ", " (slice $lacks 0 (min 3 (len $lacks) | int)))) }}
{{- end }}
{{- end }}
{{- else if $.missing }}
{{- fail (printf "crds.install is false, and the cluster has no CRD %s: %s" $wanted.metadata.name $.missing) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The paths of fields that a schema lacks, one a line; takes found, wanted (schemas) and path. */}}
{{- define "dsf.lackingFields" -}}
{{- $found := .found | default dict }}
{{- $path := .path }}
{{- range $name, $wanted := .wanted.properties }}
{{- $there := get ($found.properties | default dict) $name }}
{{- if $there }}
{{- include "dsf.lackingFields" (dict "found" $there "wanted" $wanted "path" (printf "%s.%s" $path $name)) }}
{{- else }}
{{- printf "%s.%s\n" $path $name }}
{{- end }}
{{- end }}
{{- with .wanted.items }}
{{- include "dsf.lackingFields" (dict "found" $found.items "wanted" . "path" (printf "%s[]" $path)) }}
{{- end }}
{{- if kindIs "map" .wanted.additionalProperties }}
{{- include "dsf.lackingFields" (dict "found" $found.additionalProperties "wanted" .wanted.additionalProperties "path" (printf "%s.*" $path)) }}
{{- end }}
{{- end }}

{{- /* Fails if monitoring is enabled for the release and the Prometheus operator is missing. */}}
{{- define "dsf.requireMonitoring" -}}
{{- range $field := list "serviceMonitor" "podMonitor" "rules" }}
{{- if dig $field "enabled" false $.Values.metrics }}
{{- include "dsf.requireAPI" (dict "root" $ "api" "monitoring.coreos.com/v1" "hint" (printf "metrics.%s.enabled needs the Prometheus operator. Install it, or set metrics.%s.enabled=false." $field $field)) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Fails if the values lack those of this version. Each template asks first, since helm may render it first. */}}
{{- define "dsf.requireValues" -}}
{{- if not (hasKey .Values "commonLabels") }}
{{- fail (printf "the values are those of an earlier version of the chart, without the defaults of %s: run helm upgrade with --reset-then-reuse-values (helm 3.14 or newer) instead of --reuse-values" .Chart.Version) }}
{{- end }}
{{- end }}
