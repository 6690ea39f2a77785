#!/usr/bin/env bash
# Runs the tests of the console in a real browser: scripts/browser.sh [arguments of go test]
#
# Chromium is the one on the PATH (or the one that CHROME names); where there is none, root on Debian gets it installed. axe-core, which checks
# accessibility, is fetched with npm into the user's cache once, and its checksum compared.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

find_chrome() {
	local name
	for name in ${CHROME:-} chromium chromium-browser google-chrome google-chrome-stable chrome; do
		if command -v "$name"; then return; fi
	done
	return 1
}

# install installs packages of Debian.
install() {
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "$1 is not on the PATH: install it and try again; CHROME names another Chromium" >&2
		exit 1
	fi
	apt-get update -q
	DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 "$@"
}

if ! CHROME="$(find_chrome)"; then
	install chromium fonts-dejavu-core
	CHROME="$(find_chrome)"
fi
export CHROME

axe_version=4.14.1
axe_sha512=1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5
axe="${XDG_CACHE_HOME:-$HOME/.cache}/daybook/axe-core-$axe_version.js"
if [ ! -e "$axe" ]; then
	command -v npm >/dev/null || install npm
	mkdir -p "$(dirname "$axe")"
	new="$(mktemp -d)"
	trap 'rm -rf "$new"' EXIT
	npm pack --silent --pack-destination "$new" "axe-core@$axe_version" >/dev/null
	echo "$axe_sha512  $new/axe-core-$axe_version.tgz" | sha512sum --check --quiet
	tar -xzf "$new/axe-core-$axe_version.tgz" -C "$new" package/axe.min.js
	mv "$new/package/axe.min.js" "$axe"
	rm -rf "$new" # the program below takes this one's place
fi
export DAYBOOK_AXE="$axe"

exec go test -tags browser -count 1 -timeout 10m "$@" ./internal/dev/browser
