{{- define "daybook.fullname" -}}
{{- $name := contains .Chart.Name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) -}}
{{- .Values.fullnameOverride | default $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* What a selector names. It never changes. The argument: root, component. */}}
{{- define "daybook.selector" -}}
app.kubernetes.io/name: {{ eq .component "migrate" | ternary "daybook-migrate" "daybook" }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "daybook.labels" -}}
{{ include "daybook.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: daybook
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "daybook.image" -}}
{{- with .Values.image -}}
{{- $_ := required "image.repository: the registry and name of the image, which docs/docker.md tells how to build" .repository -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* The sources of a projected volume with certificates; empty when there are none. The argument: tls. */}}
{{- define "daybook.certificates" -}}
{{- if and .caSecret .caConfigMap }}{{ fail "tls: give caSecret or caConfigMap, not both" }}{{ end -}}
{{- with .caSecret }}
- secret: {name: {{ . }}, items: [{key: ca.crt, path: ca.crt}]}
{{- end }}
{{- with .caConfigMap }}
- configMap: {name: {{ . }}, items: [{key: ca.crt, path: ca.crt}]}
{{- end }}
{{- with .clientSecret }}
- secret: {name: {{ . }}, items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]}
{{- end }}
{{- end -}}

{{/* The environment variables as JSON. The argument: root, of, component. Those that the chart makes cannot be replaced by env. */}}
{{- define "daybook.env" -}}
{{- $v := .root.Values -}}
{{- $env := dict -}}
{{- if ne .component "migrate" }}{{ $env = mergeOverwrite (dict) $v.env (.of.env | default dict) }}{{ end -}}
{{- range $name, $value := $env -}}
{{- $secret := "(?i)(DATABASE.*URL|PASSWORD|SECRET|TOKEN|API_?KEY|CREDENTIAL|AUTHORIZATION|OTLP.*HEADERS)" -}}
{{- $plain := "^DAYBOOK_(SECRETS_DIR|SECRET_ORGS_.*|PLAID_TOKEN_FUNCTION|TWILIO_API_KEY_SID)$" -}}
{{- if and (regexMatch $secret $name) (not (regexMatch $plain $name)) -}}
{{- fail (printf "env: %s may hold a secret, which everyone who may read the Deployment would see: put it into the Secret that existingSecret names" $name) -}}
{{- else if regexMatch "://[^/]*:[^/]*@" $value -}}
{{- fail (printf "env: %s has an address with a password, which everyone who may read the Deployment would see: put it into the Secret that existingSecret names" $name) -}}
{{- end -}}
{{- end -}}
{{- with $v.postgresql.tls -}}
{{- if or .caSecret .caConfigMap -}}
{{- $_ := set $env "PGSSLMODE" "verify-full" }}{{ $_ := set $env "PGSSLROOTCERT" "/etc/daybook/postgresql/ca.crt" -}}
{{- end -}}
{{- if .clientSecret -}}
{{- $_ := set $env "PGSSLCERT" "/etc/daybook/postgresql/tls.crt" }}{{ $_ := set $env "PGSSLKEY" "/etc/daybook/postgresql/tls.key" -}}
{{- end -}}
{{- end -}}
{{- if ne .component "migrate" -}}
{{- with $v.temporal -}}
{{- $_ := set $env "TEMPORAL_ADDRESS" (required "temporal.address: name Temporal's frontend, such as temporal-frontend.temporal:7233" .address) -}}
{{- $_ := set $env "TEMPORAL_NAMESPACE" .namespace -}}
{{- with .tls -}}
{{- if or .enabled .caSecret .caConfigMap .clientSecret }}{{ $_ := set $env "TEMPORAL_TLS" "true" }}{{ end -}}
{{- if .serverName }}{{ $_ := set $env "TEMPORAL_TLS_SERVER_NAME" .serverName }}{{ end -}}
{{- if or .caSecret .caConfigMap }}{{ $_ := set $env "TEMPORAL_TLS_SERVER_CA_CERT_PATH" "/etc/daybook/temporal/ca.crt" }}{{ end -}}
{{- if .clientSecret -}}
{{- $_ := set $env "TEMPORAL_TLS_CLIENT_CERT_PATH" "/etc/daybook/temporal/tls.crt" -}}
{{- $_ := set $env "TEMPORAL_TLS_CLIENT_KEY_PATH" "/etc/daybook/temporal/tls.key" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with .of.fleet }}{{ $_ := set $env "DAYBOOK_FLEET" . }}{{ end -}}
{{- end -}}
{{- range $name, $value := $env }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end -}}

{{/* A pod's template. The argument: root, component, of (its values), args, and container: ports and probes. */}}
{{- define "daybook.pod" -}}
{{- $v := .root.Values -}}
{{- $secret := .of.existingSecret | default $v.existingSecret -}}
{{- $postgresql := include "daybook.certificates" $v.postgresql.tls | trim -}}
{{- $temporal := eq .component "migrate" | ternary "" (include "daybook.certificates" $v.temporal.tls | trim) -}}
metadata:
  labels:
    {{- include "daybook.labels" . | nindent 4 }}
  {{- with .of.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ $v.serviceAccountName }}
  automountServiceAccountToken: false
  # Variables that Kubernetes makes of the names of services would begin with DAYBOOK_ too.
  enableServiceLinks: false
  {{- with $v.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    {{- with $v.runAsUser }}
    runAsUser: {{ int64 . }}
    runAsGroup: {{ int64 . }}
    fsGroup: {{ int64 . }}
    {{- end }}
    seccompProfile: {type: RuntimeDefault}
  {{- if eq .component "migrate" }}
  restartPolicy: Never
  {{- else }}
  terminationGracePeriodSeconds: {{ .of.terminationGracePeriodSeconds }}
  topologySpreadConstraints:
    {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "daybook.selector" $ | nindent 10 }}
      matchLabelKeys: [pod-template-hash]
    {{- end }}
  {{- end }}
  containers:
    - name: {{ .component }}
      image: {{ include "daybook.image" .root }}
      imagePullPolicy: {{ $v.image.pullPolicy }}
      args:
        {{- toYaml .args | nindent 8 }}
      envFrom:
        - secretRef:
            name: {{ required "existingSecret: name a Secret of this namespace that has the key DAYBOOK_DATABASE_URL" $secret }}
      {{- with include "daybook.env" . | trim }}
      env:
        {{- . | nindent 8 }}
      {{- end }}
      {{- with .container }}
      {{- . | nindent 6 }}
      {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      {{- with .of.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        - {name: tmp, mountPath: /tmp}
        {{- if $postgresql }}
        - {name: postgresql, mountPath: /etc/daybook/postgresql, readOnly: true}
        {{- end }}
        {{- if $temporal }}
        - {name: temporal, mountPath: /etc/daybook/temporal, readOnly: true}
        {{- end }}
        {{- if ne .component "migrate" }}{{ with $v.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}{{ end }}
  volumes:
    - {name: tmp, emptyDir: {}}
    {{- with $postgresql }}
    - name: postgresql
      projected:
        defaultMode: 0440
        sources:
          {{- . | nindent 10 }}
    {{- end }}
    {{- with $temporal }}
    - name: temporal
      projected:
        defaultMode: 0440
        sources:
          {{- . | nindent 10 }}
    {{- end }}
    {{- if ne .component "migrate" }}{{ with $v.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}{{ end }}
  {{- with .of.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .of.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .of.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* A Deployment and its PodDisruptionBudget. The argument: as of daybook.pod. */}}
{{- define "daybook.deployment" -}}
{{- $name := printf "%s-%s" (include "daybook.fullname" .root) .component -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "daybook.labels" . | nindent 4 }}
spec:
  {{- if not (kindIs "invalid" .of.replicas) }}
  replicas: {{ .of.replicas }}
  {{- end }}
  # A program that ends soon after its start, because the schema is not its own, was never available: the old ones stay.
  minReadySeconds: 10
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxSurge: {{ .of.maxSurge }}, maxUnavailable: {{ .of.maxUnavailable }}}
  selector:
    matchLabels:
      {{- include "daybook.selector" . | nindent 6 }}
  template:
    {{- include "daybook.pod" . | nindent 4 }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "daybook.labels" . | nindent 4 }}
spec:
  maxUnavailable: {{ .of.podDisruptionBudget.maxUnavailable }}
  # A pod that does not start must not keep a node from being drained.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "daybook.selector" . | nindent 6 }}
{{- end -}}
