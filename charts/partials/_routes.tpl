{{- /*
How callers outside of the cluster reach a Service whose port is named http. Each takes a dict: root, name (of the
Service), hosts, hostsValue (the value that sets them), values (a value `ingress` or `httpRoute`).
*/}}

{{- define "dsf.ingress" -}}
{{- if not .hosts }}{{ fail (printf "%s: name at least one host" .hostsValue) }}{{ end }}
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
{{- if not .values.parentRefs }}{{ fail "httpRoute.parentRefs: name the Gateway" }}{{ end }}
{{- if not .hosts }}{{ fail (printf "%s: name at least one host" .hostsValue) }}{{ end }}
{{- include "dsf.requireAPI" (dict "root" .root "api" "gateway.networking.k8s.io/v1" "hint" "httpRoute.enabled needs the Gateway API's CRDs.") -}}
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
