{{- define "mouthpiece.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "mouthpiece.selector" -}}
app.kubernetes.io/name: mouthpiece
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end -}}

{{- define "mouthpiece.labels" -}}
{{ include "mouthpiece.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "mouthpiece.secret" -}}
{{- .Values.secret.existing | default (include "mouthpiece.name" .) -}}
{{- end -}}

{{- define "mouthpiece.image" -}}
{{- .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion -}}
{{- end -}}

{{- define "mouthpiece.udpLast" -}}
{{- sub (add .Values.ports.udpFirst .Values.workers) 1 -}}
{{- end -}}

{{- define "mouthpiece.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- /* Sessions that run and those that must fit, by what a server holds at their present cost. */ -}}
{{- define "mouthpiece.replicasWanted" -}}
ceil((sum(mouthpiece_worker_sessions) + {{ .Values.autoscaling.spareSessions }}) / clamp_min((sum(mouthpiece_worker_sessions) + sum(mouthpiece_room_sessions)) / count(mouthpiece_ready == 1), 1))
{{- end -}}
