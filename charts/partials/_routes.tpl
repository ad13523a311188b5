{{- /*
How callers outside of the cluster reach a Service whose port is named http. Each takes a dict: root, name (of the
Service), hosts, hostsValue (the value that sets them), values (a value `ingress` or `httpRoute`).
*/}}

{{- define "dsf.requireHosts" -}}
{{- if not .at.hosts }}{{ fail (printf "%s: empty, but %s is true. Name at least one host, such as scores.example.com." .at.hostsValue .enabled) }}{{ end }}
{{- end }}

{{- define "dsf.ingress" -}}
{{- include "dsf.requireHosts" (dict "at" . "enabled" "ingress.enabled") }}
{{- $name := .name -}}
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  {{- include "dsf.meta" (dict "root" .root "annotations" .values.annotations) | nindent 2 }}
spec:
  {{- with .values.className }}
  ingressClassName: {{ . }}
  {{- end }}
  {{- with .values.tls }}
  tls: {{- toYaml . | nindent 4 }}
  {{- end }}
  rules:
    {{- range .hosts }}
    - host: {{ . }}
      http:
        paths:
          - path: /
            pathType: Prefix
            backend:
              service:
                name: {{ $name }}
                port: {name: http}
    {{- end }}
{{- end }}

{{- /* Takes port as well: that of the Service. */}}
{{- define "dsf.httpRoute" -}}
{{- if not .values.parentRefs }}{{ fail "httpRoute.parentRefs: empty, but httpRoute.enabled is true. Name the Gateway, such as {name: public, namespace: gateways}." }}{{ end }}
{{- include "dsf.requireHosts" (dict "at" . "enabled" "httpRoute.enabled") }}
{{- include "dsf.requireAPI" (dict "root" .root "api" "gateway.networking.k8s.io/v1" "hint" "httpRoute.enabled needs the Gateway API's CRDs. Install them, or set ingress.enabled instead.") -}}
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  {{- include "dsf.meta" (dict "root" .root "annotations" .values.annotations) | nindent 2 }}
spec:
  parentRefs: {{- toYaml .values.parentRefs | nindent 4 }}
  hostnames: {{- toYaml .hosts | nindent 4 }}
  rules:
    - matches:
        - path: {type: PathPrefix, value: /}
      {{- with .values.filters }}
      filters: {{- toYaml . | nindent 8 }}
      {{- end }}
      backendRefs:
        - name: {{ .name }}
          port: {{ .port }}
{{- end }}
