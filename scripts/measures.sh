#!/usr/bin/env bash
# Prints the measures of the code's size that CONTRIBUTING.md names. Tests and generated files apart.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C.UTF-8
code() { git ls-files "$@" | grep -vE '_test\.go$|/testdata/|/images/|^migrations/schema\.sql$|^clients/.*/schema\.ts$'; }

echo "words of documents: $(git ls-files -z '*.md' | xargs -0 cat | wc -w)"
echo "words of CHANGELOG.md and README.md: $(wc -w < CHANGELOG.md) $(wc -w < README.md)"
all="$(code '*.go' '*.sql' '*.ts' '*.sh')"
echo "lines: $(xargs cat <<<"$all" | wc -l), wider than 120 columns: $(xargs cat <<<"$all" | grep -cE '^.{121,}')"
echo "lines of the engine and its statements: $(code internal/engine internal/store/due internal/store/wake \
	internal/store/{lease,pick,complete,reclaim,scan,poll}'*.go' | grep -v kindtest | xargs cat | wc -l)"
echo "folders in internal: $(git ls-files internal | cut -d/ -f2 | sort -u | wc -l)"

echo "most methods:"
code '*.go' | xargs grep -oE '^func \(\w+ \*?\w+' | sed -E 's,/[^/]*:func \(\w+ \*?, ,' | sort | uniq -c | sort -rn | head -3 || true
echo "most fields:"
code '*.go' | xargs awk '
	/^type .* struct {$/ { name = FILENAME " " $2; n = 0 }
	name && /^\t[A-Za-z]/ { sub(/ *\/\/.*|func.*/, ""); n += gsub(/,/, "") + 1 }
	name && /^}/ { print n, name; name = "" }' | sort -rn | head -3 || true
