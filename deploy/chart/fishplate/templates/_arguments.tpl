{{- /* The program's arguments. A flag whose value is empty or null is left to the program's own default. */ -}}
{{- define "fishplate.arguments" -}}
{{- $d := .Values.driver -}}
- driver
- --driver-name={{ $d.name }}
- --bind-address={{ .Values.metrics.address }}:{{ .Values.metrics.port }}
- --kubelet-root-dir={{ .Values.paths.kubelet }}
- --cdi-dir={{ .Values.paths.cdi }}
- --nri-socket={{ .Values.paths.nriSocket }}
- --db-path={{ .Values.paths.state }}/driver.db
- --injection={{ $d.injection }}
- --log-format={{ $d.logFormat }}
- --v={{ $d.logLevel }}
{{- with $d.filter }}
- {{ printf "--filter=%s" . | quote }}
{{- end }}
{{- with $d.cloudProviderHint }}
- --cloud-provider-hint={{ . }}
{{- end }}
{{- with $d.profileProvider }}
- --profile-provider={{ . }}
{{- end }}
{{- with $d.webhookURL }}
- {{ printf "--webhook-url=%s" . | quote }}
{{- end }}
{{- if not (kindIs "invalid" $d.moveIBInterfaces) }}
- --move-ib-interfaces={{ $d.moveIBInterfaces }}
{{- end }}
{{- with $d.inventory.minPollInterval }}
- --inventory-min-poll-interval={{ . }}
{{- end }}
{{- with $d.inventory.maxPollInterval }}
- --inventory-max-poll-interval={{ . }}
{{- end }}
{{- if not (kindIs "invalid" $d.inventory.pollBurst) }}
- --inventory-poll-burst={{ $d.inventory.pollBurst }}
{{- end }}
{{- if $d.allowManagementNodes }}
- --allow-management-nodes
{{- end }}
{{- if $d.ncclEnvironment }}
- --nccl-environment
{{- end }}
{{- if $d.publishGpuUuid }}
- --publish-gpu-uuid
{{- end }}
{{- with $d.metadataFile }}
- --metadata-file={{ . }}
{{- end }}
{{- if .Values.nodeFeatures.enabled }}
- --node-features-file={{ .Values.nodeFeatures.directory }}/fishplate
{{- end }}
{{- if $d.featureGates }}
{{- $gates := list }}
{{- range $gate, $on := $d.featureGates }}
{{- $gates = append $gates (printf "%s=%t" $gate $on) }}
{{- end }}
- --feature-gates={{ join "," $gates }}
{{- end }}
{{- range $d.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}
