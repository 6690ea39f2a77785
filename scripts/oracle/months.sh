#!/usr/bin/env bash
# Keeps the books of the data set "Online Retail" as an accountant does: month by month, in order, its documents are imported
# and posted, what belongs together is reconciled, and the month is closed. Afterwards the statements of each month must be
# those that hledger makes of the export, to the cent, and the audit must find every closing as it was written and signed.
#
# ONLINE_RETAIL names the archive; the default is ../shared/data/online-retail.tar.xz. Any difference is exit code 1.
set -euo pipefail
cd "$(dirname "$0")/../.."

archive=${ONLINE_RETAIL:-../shared/data/online-retail.tar.xz}
readonly archive org=shop

# shellcheck source=common.sh
source scripts/oracle/common.sh

unpack() { mkdir "$work/csv" && tar -xf "$archive" -C "$work/csv"; }
make_keys() {
	openssl genpkey -algorithm ed25519 -out "$work/closing.pem" && openssl pkey -in "$work/closing.pem" -pubout -out "$work/closing.pub"
}

# keep_month MONTH does all that is done of a month.
keep_month() {
	daybook import csv --org "$org" --mapping internal/moving/sample/online-retail/mapping.yaml "$work/csv/$1"-*.csv &&
		post "month-$1" &&
		daybook open-items match --org "$org" &&
		daybook periods check --org "$org" --month "$1" &&
		DAYBOOK_CLOSING_KEY=$work/closing.pem daybook periods close --org "$org" --month "$1"
}

export_journal() { daybook export --format hledger --org "$org" -o "$work/journal.hledger"; }

step "install the checkers that are missing" install_checkers
step "build daybook" go build -o "$work/daybook" ./cmd/daybook
temporal=$(go run ./internal/dev/devstack/temporalcli)
readonly temporal
step "start PostgreSQL, Temporal and a worker" start_stack
step "apply the chart and the rules" set_up
step "unpack the archive" unpack
step "make a key for closings" make_keys
mapfile -t months < <(find "$work/csv" -name '*.csv' -printf '%f\n' | cut -c1-7 | sort -u)
for month in "${months[@]}"; do daybook periods add --org "$org" --month "$month" >"$work/step.log"; done
for month in "${months[@]}"; do
	step "import, post, reconcile, check and close $month" keep_month "$month"
done
step "export for hledger" export_journal
step "audit, with the key of the closings" daybook audit --org "$org" --closing-key "$work/closing.pub"

echo
python3 scripts/oracle/months.py "$work/daybook" "$org" "$work/journal.hledger" "${months[@]}"
