# shellcheck shell=bash
# What the scripts of this folder share: a private stack, and steps that say how long they took. The script that sources it
# has set -euo pipefail, and names the archive and the organization in $archive and $org.

if [[ ! -f $archive ]]; then
	echo "oracle: there is no $archive: set ONLINE_RETAIL to the archive of UCI's \"Online Retail\", one CSV file a day (docs/export.md)" >&2
	exit 1
fi

# A stack of its own, whatever the environment names.
unset DAYBOOK_DATABASE_URL TEMPORAL_ADDRESS TEMPORAL_NAMESPACE TEMPORAL_API_KEY TEMPORAL_PROFILE
export TEMPORAL_CONFIG_FILE=/dev/null LC_ALL=C.UTF-8
work=$(mktemp -d)
stack=
clean_up() {
	if [[ -n $stack ]]; then
		kill -INT "$stack" 2>/dev/null || true
		wait "$stack" 2>/dev/null || true
	fi
	if [[ -L $work/stack/postgres ]]; then rm -rf "$(readlink "$work/stack/postgres")"; fi
	rm -rf "$work"
}
trap clean_up EXIT

took() { awk -v name="$1" -v begin="$2" -v end="$EPOCHREALTIME" 'BEGIN { printf "%-58s %7.1f s\n", name, end - begin }'; }

# step NAME COMMAND… runs a command and prints how long it took; what it says is shown when it fails. As bash heeds no -e in
# a condition, what is tried is a chain of &&.
step() {
	local name=$1 begin=$EPOCHREALTIME
	shift
	if ! "$@" >"$work/step.log" 2>&1; then
		echo "FAILED: $name" >&2
		tail -n 40 "$work/step.log" >&2
		exit 1
	fi
	took "$name" "$begin"
}

# must_be NAME WANT GOT prints a figure and fails when it is another.
must_be() {
	printf '%-58s %s\n' "$1" "$3"
	if [[ $2 != "$3" ]]; then
		echo "FAILED: $1: want $2" >&2
		exit 1
	fi
}

# figure FILE NAME finds a figure that a script printed.
figure() { awk -v name="$2" '$1 == name { print $2 }' "$work/$1"; }

# field FILE NAME… finds a value in a file of JSON.
field() {
	python3 -c 'import functools, json, operator, sys; print(functools.reduce(operator.getitem, sys.argv[2:], json.load(open(sys.argv[1]))))' "$work/$1" "${@:2}"
}

install_checkers() {
	local missing=() as_root=()
	command -v hledger >/dev/null || missing+=(hledger)
	command -v ledger >/dev/null || missing+=(ledger)
	command -v bean-check >/dev/null || missing+=(beancount)
	((${#missing[@]})) || return 0
	if ! command -v apt-get >/dev/null; then
		echo "There is no apt-get: install ${missing[*]} by other means."
		return 1
	fi
	if ((EUID != 0)); then as_root=(sudo); fi
	"${as_root[@]}" apt-get update &&
		"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
}

daybook() { "$work/daybook" --log-level warn "$@"; }

# start_stack starts PostgreSQL, Temporal and a worker, and ends the workflow that they come with, so that nothing is posted
# before everything is imported.
start_stack() {
	"$work/daybook" dev --json --log-level warn --dir "$work/stack" --temporal-port 0 --ui-port 0 --postgres-port 0 \
		>"$work/stack.json" 2>"$work/stack.log" &
	stack=$!
	until python3 -m json.tool "$work/stack.json" >/dev/null 2>&1; do
		if ! kill -0 "$stack" 2>/dev/null; then
			cat "$work/stack.log"
			return 1
		fi
		sleep 0.2
	done
	DAYBOOK_DATABASE_URL=$(field stack.json databaseUrl) && TEMPORAL_ADDRESS=$(field stack.json temporalAddress) || return 1
	export DAYBOOK_DATABASE_URL TEMPORAL_ADDRESS
	"$temporal" workflow cancel --workflow-id accounting-queue-worker-production || return 1
	# A cancelled workflow has no result, which the command says by its exit code.
	"$temporal" workflow result --workflow-id accounting-queue-worker-production || true
}

set_up() {
	daybook accounts import internal/moving/sample/online-retail/chart.csv --org "$org" --create &&
		daybook rules apply internal/moving/sample/online-retail/rules.yaml --org "$org"
}

# post WORKFLOW works all jobs that are due through a workflow of that id.
post() {
	"$temporal" workflow start --task-queue accounting-queue --type syncAccountingQueueWorkflow --workflow-id "$1" \
		--input '{"batchSize": 500, "pollIntervalSeconds": 1, "exitWhenEmpty": true}' &&
		"$temporal" workflow result --workflow-id "$1"
}
