{{- /* Every section of every page: path, anchor, heading, page, text. */ -}}
{{- $sections := slice -}}
{{- range site.Pages -}}
  {{- $path := strings.TrimPrefix "/" .RelPermalink -}}
  {{- $title := partial "title" . -}}
  {{- $marked := replaceRE `<h[1-6] id="([^"]*)">(.*?)</h[1-6]>` "\x00${1}\x01${2}\x01" .Content -}}
  {{- range after 1 (split $marked "\x00") -}}
    {{- $parts := split . "\x01" -}}
    {{- $plain := slice -}}
    {{- range $parts -}}{{- $plain = $plain | append (trim (replaceRE `\s+` " " (. | plainify | htmlUnescape)) " ") -}}{{- end -}}
    {{- $sections = $sections | append (dict "path" $path "anchor" (index $plain 0) "heading" (index $plain 1) "page" $title "text" (index $plain 2)) -}}
  {{- end -}}
{{- end -}}
window.sections = {{ $sections | jsonify }};
