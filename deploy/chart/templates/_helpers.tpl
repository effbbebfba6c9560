{{/* What the names of all objects begin with. */}}
{{- define "prewarm.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{/* The ServiceAccounts, and what their roles and workloads are named after. */}}
{{- define "prewarm.controller" -}}
{{ include "prewarm.fullname" . }}-controller
{{- end -}}
{{- define "prewarm.agent" -}}
{{ include "prewarm.fullname" . }}-agent
{{- end -}}

{{/* Where the agents run. */}}
{{- define "prewarm.agentNamespace" -}}
{{ .Values.agent.namespace | default .Release.Namespace }}
{{- end -}}

{{/*
Labels that select pods. The name is the same in every release: `prewarm check` finds an installation by it.
Call with a list of the context and the component.
*/}}
{{- define "prewarm.selectorLabels" -}}
app.kubernetes.io/name: prewarm-{{ index . 1 }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
{{- end -}}

{{/* Labels of a component's objects. Call as above. */}}
{{- define "prewarm.labels" -}}
{{ include "prewarm.selectorLabels" . }}
app.kubernetes.io/part-of: prewarm
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
{{- end -}}

{{- define "prewarm.image" -}}
{{- $image := .Values.image -}}
{{ $image.repository }}{{ if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .Chart.AppVersion }}{{ end }}
{{- end -}}

{{- define "prewarm.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Neither program needs more than this of its container. */}}
{{- define "prewarm.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Both programs answer alike. */}}
{{- define "prewarm.probes" -}}
livenessProbe:
  httpGet:
    path: /healthz
    port: http
  periodSeconds: 20
  failureThreshold: 3
readinessProbe:
  httpGet:
    path: /readyz
    port: http
  periodSeconds: 10
{{- end -}}

{{/* The labels of the nodes that agents run on, as the controller's flag wants them. */}}
{{- define "prewarm.agentNodeSelector" -}}
{{- $parts := list -}}
{{- range $key, $value := .Values.agent.nodeSelector -}}
{{- $parts = append $parts (printf "%s=%s" $key $value) -}}
{{- end -}}
{{ join "," $parts }}
{{- end -}}

{{- define "prewarm.proxyEnvironment" -}}
{{- with .Values.proxy.http }}
- name: HTTP_PROXY
  value: {{ . | quote }}
{{- end }}
{{- with .Values.proxy.https }}
- name: HTTPS_PROXY
  value: {{ . | quote }}
{{- end }}
{{- with .Values.proxy.none }}
- name: NO_PROXY
  value: {{ . | quote }}
{{- end }}
{{- end -}}
