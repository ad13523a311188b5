{{- /* The CRDs in files/crds. They stay when the release is uninstalled. */}}
{{- define "dsf.crds" -}}
{{- range $path, $_ := .Files.Glob "files/crds/*.yaml" }}
{{- $crd := $.Files.Get $path | fromYaml }}
{{- $hint := "Its CRDs are shared: install this release with crds.install=false." }}
{{- include "dsf.requireFree" (dict "root" $ "apiVersion" "apiextensions.k8s.io/v1" "kind" "CustomResourceDefinition" "name" $crd.metadata.name "hint" $hint) }}
{{- $metadata := include "dsf.meta" (dict "root" $ "annotations" (dict "helm.sh/resource-policy" "keep")) | fromYaml }}
{{- $_ := set $crd "metadata" (merge $metadata (dict "name" $crd.metadata.name)) }}
---
{{ toYaml $crd }}
{{- end }}
{{- end }}
