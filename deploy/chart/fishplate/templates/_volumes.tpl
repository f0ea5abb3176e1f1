{{- /* Where the kubelet's own directory of plugins would show the sockets of every other plugin, ours has one directory. */ -}}
{{- define "fishplate.volumes" -}}
- name: plugin
  hostPath: {path: {{ .Values.paths.kubelet }}/plugins/{{ .Values.driver.name }}, type: DirectoryOrCreate}
- name: registry
  hostPath: {path: {{ .Values.paths.kubelet }}/plugins_registry, type: DirectoryOrCreate}
- name: cdi
  hostPath: {path: {{ .Values.paths.cdi }}, type: DirectoryOrCreate}
- name: nri
  hostPath: {path: {{ dir .Values.paths.nriSocket }}, type: DirectoryOrCreate}
- name: state
  hostPath: {path: {{ .Values.paths.state }}, type: DirectoryOrCreate}
# Only looked at, for owners and modes: the container's device rules let it open none of them. The directory is made where
# the modules are not loaded yet; the kernel puts its nodes into it later, and removes no directory that it did not make.
- name: infiniband
  hostPath: {path: /dev/infiniband, type: DirectoryOrCreate}
{{- if .Values.nodeFeatures.enabled }}
- name: features
  hostPath: {path: {{ .Values.nodeFeatures.directory }}, type: DirectoryOrCreate}
{{- end }}
{{- with .Values.driver.metadataFile }}
- name: metadata
  hostPath: {path: {{ dir . }}, type: Directory}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "fishplate.mounts" -}}
- {name: plugin, mountPath: {{ .Values.paths.kubelet }}/plugins/{{ .Values.driver.name }}}
- {name: registry, mountPath: {{ .Values.paths.kubelet }}/plugins_registry}
- {name: cdi, mountPath: {{ .Values.paths.cdi }}}
- {name: nri, mountPath: {{ dir .Values.paths.nriSocket }}}
- {name: state, mountPath: {{ .Values.paths.state }}}
- {name: infiniband, mountPath: /dev/infiniband, readOnly: true}
{{- if .Values.nodeFeatures.enabled }}
- {name: features, mountPath: {{ .Values.nodeFeatures.directory }}}
{{- end }}
{{- with .Values.driver.metadataFile }}
- {name: metadata, mountPath: {{ dir . }}, readOnly: true}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Takes the root and a path. */ -}}
{{- define "fishplate.probe" -}}
{{- $root := index . 0 -}}
httpGet:
  path: {{ index . 1 }}
  port: {{ $root.Values.metrics.port }}
  {{- with $root.Values.metrics.address }}
  host: {{ . | trimPrefix "[" | trimSuffix "]" | quote }}
  {{- end }}
timeoutSeconds: 5
{{- end }}
