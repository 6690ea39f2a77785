#!/usr/bin/env bash
# Posts the data set "Online Retail" through the workflow of a private stack, and lets programs that nobody of Daybook wrote
# judge the result: hledger, Ledger, Beancount, and a script that works the entries out from the CSV files alone.
#
# ONLINE_RETAIL names the archive; the default is ../shared/data/online-retail.tar.xz. Any difference is exit code 1.
set -euo pipefail
cd "$(dirname "$0")/../.."

archive=${ONLINE_RETAIL:-../shared/data/online-retail.tar.xz}
readonly archive org=shop documents=25900 with_entries=23798 net_total=9747747.93

# shellcheck source=common.sh
source scripts/oracle/common.sh

# export_as FORMAT FLAG… exports twice: the same bytes both times.
export_as() {
	local format=$1
	shift
	daybook export --format "$format" --org "$org" "$@" -o "$work/journal.$format" &&
		daybook export --format "$format" --org "$org" "$@" | cmp - "$work/journal.$format"
}

expect() { python3 scripts/oracle/expected.py "$archive" >"$work/expected.csv" 2>"$work/expected.figures"; }
sum_up() { python3 scripts/oracle/exported.py "$work/journal.csv" >"$work/actual.csv" 2>"$work/actual.figures"; }

step "install the checkers that are missing" install_checkers
step "build daybook" go build -o "$work/daybook" ./cmd/daybook
temporal=$(go run ./internal/dev/devstack/temporalcli)
readonly temporal
step "start PostgreSQL, Temporal and a worker" start_stack
step "apply the chart and the rules" set_up
step "import the documents" daybook import csv --org "$org" --mapping internal/moving/sample/online-retail/mapping.yaml "$archive"
step "post them through the workflow" post oracle
daybook status --json | python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin)["queues"][0]["counts"]))' >"$work/counts.json"

step "export for hledger, twice" export_as hledger --assertions
step "export for Ledger, twice" export_as ledger --assertions
step "export for Beancount, twice" export_as beancount --assertions
step "export as CSV, twice" export_as csv
step "hledger check -s ordereddates payees balancednoautoconv." \
	hledger -f "$work/journal.hledger" check -s ordereddates payees balancednoautoconversion
step "ledger --strict --pedantic" ledger --args-only -f "$work/journal.ledger" --strict --pedantic balance
step "bean-check" bean-check --no-cache "$work/journal.beancount"
step "expected entries, from the CSV files alone" expect
step "exported entries, from the export alone" sum_up
step "compare each document and account" diff -u "$work/expected.csv" "$work/actual.csv"

echo
must_be "documents in the files" "$documents" "$(figure expected.figures documents)"
must_be "jobs completed" "$documents" "$(field counts.json completed)"
must_be "documents with entries, expected" "$with_entries" "$(figure expected.figures with_entries)"
must_be "documents with entries, exported" "$with_entries" "$(figure actual.figures with_entries)"
must_be "net total in GBP, expected" "$net_total" "$(figure expected.figures net_total)"
must_be "net total in GBP, exported" "$net_total" "$(figure actual.figures net_total)"
printf '%-58s %s\n' "balances by document and account, all equal" "$(wc -l <"$work/expected.csv")"
printf '%-58s %s\n' "entries" "$(($(wc -l <"$work/journal.csv") - 1))"
