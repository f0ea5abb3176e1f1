{{- define "fishplate.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- define "fishplate.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "fishplate.name" . -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "fishplate.selector" -}}
app.kubernetes.io/name: {{ include "fishplate.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "fishplate.labels" -}}
{{ include "fishplate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: node-driver
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "fishplate.account" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "fishplate.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name is needed where serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end }}

{{- define "fishplate.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default .Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end }}

{{- /* The field was alpha, and off, before 1.36: the API server would drop it without a word. */ -}}
{{- define "fishplate.extendedResourceName" -}}
{{- if .name }}
{{- if not (semverCompare ">=1.36.0-0" .root.Capabilities.KubeVersion.Version) }}
{{- fail (printf "extendedResourceName needs Kubernetes 1.36; this cluster is %s" .root.Capabilities.KubeVersion.Version) }}
{{- end }}
extendedResourceName: {{ .name | quote }}
{{- end }}
{{- end }}
