#!/usr/bin/env bash
# Asks govulncheck for known holes that a program reaches: scripts/vulncheck.sh GOVULNCHECK PACKAGE…
#
# It ends with 0 when none is known, 3 when some are, and 4 when it could not be asked: neither vuln.go.dev nor the module that has the same reports can be reached.
set -euo pipefail
govulncheck="$1"
shift
if curl -fsS --max-time 20 -o /dev/null https://vuln.go.dev/index/db.json 2>/dev/null; then
	database="https://vuln.go.dev"
else
	echo "vuln.go.dev cannot be reached from here; the reports are taken from the module golang.org/x/vulndb." >&2
	if ! module="$(cd / && GOFLAGS=-mod=mod go mod download -json golang.org/x/vulndb@latest 2>/dev/null)"; then
		echo "That cannot be reached either: nothing was checked. Run this where one of the two can be." >&2
		exit 4
	fi
	database="file://$(printf '%s' "$module" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')/data/osv"
	printf '%s' "$module" | sed -n 's/.*"Version": "\(.*\)".*/The reports are those of \1./p' >&2
fi
"$govulncheck" -db "$database" "$@" | awk '!/^ +#([2-9]|[1-9][0-9]+):/' # one trace of each is enough
