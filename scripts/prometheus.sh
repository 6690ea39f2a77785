#!/usr/bin/env bash
# Runs a program of Prometheus, promtool or prometheus: scripts/prometheus.sh promtool check rules FILE…
#
# One that is on the PATH is used. Otherwise Debian's package is fetched and unpacked into the user's cache, once: nothing is installed,
# so no service starts.
set -euo pipefail

program="$1"
shift
if command -v "$program" >/dev/null; then
	exec "$program" "$@"
fi

cache="${XDG_CACHE_HOME:-$HOME/.cache}/daybook/prometheus"
if [ ! -x "$cache/usr/bin/$program" ]; then
	if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
		echo "$program is not on the PATH: install Prometheus (https://prometheus.io/download) and try again" >&2
		exit 1
	fi
	echo "fetching Debian's package of Prometheus, once" >&2
	mkdir -p "$(dirname "$cache")"
	new="$(mktemp -d "$cache.XXXXXX")"
	trap 'rm -rf "$new"' EXIT
	(
		cd "$new"
		if ! apt-get download -q prometheus >&2; then
			apt-get update -q >&2 # needs root; without lists of packages there is nothing to download
			apt-get download -q prometheus >&2
		fi
		dpkg-deb -x prometheus_*.deb .
		rm prometheus_*.deb
	)
	# Two of these may run at once: the second one finds the first one's folder, and leaves its own to the trap.
	[ -e "$cache" ] || mv -T "$new" "$cache" 2>/dev/null || true
fi
exec "$cache/usr/bin/$program" "$@"
