#!/usr/bin/env bash
# Checks what a release consists of, from a clean clone of the last commit: scripts/release-check.sh [--short] [SECTION…]
#
# --short leaves out what needs minutes: it is what CI runs. A section is a function and a line at the end of this file.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
short=0
if [ "${1:-}" = --short ]; then
	short=1
	shift
fi
only=" $* "

# What the program may weigh, in bytes.
readonly heaviest=64000000
# What systemd-analyze says of the exposure of a unit, in tenths: 0 is none, 100 is all.
readonly most_exposed=15

work="$(mktemp -d "${TMPDIR:-/tmp}/daybook-release-XXXXXX")"
chmod 711 "$work"
trap 'rm -rf "$work"' EXIT
git clone --quiet --no-hardlinks . "$work/clone"
cd "$work/clone"
commit="$(git rev-parse HEAD)" seconds="$(git log -1 --format=%ct)" version=0.0.0-check
export commit seconds version

fail() {
	echo "$*" >&2
	return 1
}

# build PROGRAM: as goreleaser does for this platform; in the short form with the flags of make build, whose packages are in Go's cache.
build() {
	local flags=(-trimpath) cgo=0
	if [ "$short" = 1 ]; then flags=() cgo="$(go env CGO_ENABLED)"; fi
	CGO_ENABLED="$cgo" go build "${flags[@]}" -buildvcs=false -ldflags="-s -w -X main.version=v$version -X main.commit=$commit" -o "$1" ./cmd/daybook
}

# package PROGRAM FOLDER: the .deb and the .rpm that .goreleaser.yaml describes.
package() {
	mkdir -p "$2"
	DAYBOOK="$1" scripts/release-files.sh bin/release-files "$seconds"
	go run -C tools/release ./packages -config "$PWD/.goreleaser.yaml" -root "$PWD" -program "$1" -version "$version" \
		-commit-time "$(date -u -d "@$seconds" +%FT%TZ)" -out "$2"
}

# made SECTION: has that section make its files, where only a later one was asked for.
made() {
	case "$1" in
	program) [ -e "$work/daybook" ] || check_program ;;
	packages) [ -e "$work/packages" ] || check_packages ;;
	esac
}

check_program() {
	build "$work/daybook"
	local says
	says="$("$work/daybook" version --json)"
	for want in "\"version\": \"v$version\"" "\"commit\": \"$commit\"" '"schema": [1-9]' '"temporalSdk": "[0-9]' '"temporalApi": "v'; do
		grep -q "$want" <<<"$says" || fail "version --json lacks $want: $says"
	done
	if [ "$short" = 0 ] && command -v file >/dev/null; then
		if file "$work/daybook" | grep -q 'dynamically linked'; then fail "the program is not static"; fi
	fi
}

check_weight() {
	made program
	local weight
	weight="$(stat -c %s "$work/daybook")"
	echo "$weight bytes, at most $heaviest"
	[ "$weight" -le "$heaviest" ]
}

# The bill of materials names the program's version and each module that it links, and nothing else.
check_bill() {
	made program
	make --no-print-directory bill PROGRAM="$work/daybook" VERSION="v$version" BILL="$work/daybook.cdx.json"
	{
		echo "github.com/daybook-dev/daybook@v$version"
		go version -m "$work/daybook" | awk '$1 == "dep" { print $2 "@" $3 }'
	} | sort >"$work/linked"
	grep -o '"purl": *"pkg:golang/[^?"]*' "$work/daybook.cdx.json" | sed 's|.*pkg:golang/||; s|%2B|+|g' | sort -u >"$work/named"
	echo "$(wc -l <"$work/linked") modules"
	[ "$(wc -l <"$work/linked")" -gt 50 ] && diff "$work/linked" "$work/named"
}

check_units() {
	made program
	local unit exposed
	for unit in deploy/systemd/*.service; do
		sed "s|^ExecStart=/usr/bin/daybook|ExecStart=$work/daybook|; /^Documentation=man:/d" "$unit" >"$work/$(basename "$unit")"
		systemd-analyze verify "$work/$(basename "$unit")"
		exposed="$(systemd-analyze security --offline=true --no-pager "$unit" | sed -n 's/.*exposure level.*: \([0-9]*\)\.\([0-9]\).*/\1\2/p')"
		echo "$unit: $((10#$exposed)) tenths, at most $most_exposed"
		[ "$((10#$exposed))" -le "$most_exposed" ]
	done
}

check_packages() {
	made program
	package "$work/daybook" "$work/packages"
	local list
	list="$(dpkg-deb -c "$work"/packages/*.deb | awk '{ print $1, $2, $6 }')"
	for want in '-rwxr-xr-x root/root ./usr/bin/daybook' '-rw-r----- root/root ./etc/daybook/daybook.env' '-rw-r----- root/root ./etc/daybook/serve.env' \
		'-rw-r--r-- root/root ./usr/lib/systemd/system/daybook-worker.service' '-rw-r--r-- root/root ./usr/lib/systemd/system/daybook-serve.service' \
		'-rw-r--r-- root/root ./usr/share/man/man1/daybook-worker.1.gz' '-rw-r--r-- root/root ./usr/share/bash-completion/completions/daybook' \
		'-rw-r--r-- root/root ./usr/share/doc/daybook/prometheus/works.yml' '-rw-r--r-- root/root ./usr/share/doc/daybook/grafana/daybook-prometheus.json'; do
		grep -qF -- "$want" <<<"$list" || fail "the .deb lacks $want"
	done
	local settings=$'/etc/daybook/daybook.env\n/etc/daybook/serve.env'
	[ "$(dpkg-deb -I "$work"/packages/*.deb conffiles)" = "$settings" ]
	if command -v rpm >/dev/null; then
		[ "$(rpm -qp --configfiles "$work"/packages/*.rpm)" = "$settings" ]
		diff <(rpm -qlp "$work"/packages/*.rpm | grep -v '^/etc/daybook$' | sort) \
			<(awk '$1 !~ /^d/ { print substr($3, 2) }' <<<"$list" | sed 's|/zsh/vendor-completions/|/zsh/site-functions/|' | sort) ||
			fail "the .rpm has other files than the .deb"
	else
		echo "no rpm here: only the .deb was read"
	fi
}

check_installed() {
	made packages
	version=0.0.1-check package "$work/daybook" "$work/newer"
	scripts/release/installed.sh "$work/daybook" "$work"/packages/*.deb "$work"/newer/*.deb
}

# Built again in another folder, with nothing in Go's cache: the same bytes.
check_reproducible() {
	made packages
	git clone --quiet . "$work/elsewhere/another/clone"
	cd "$work/elsewhere/another/clone"
	GOCACHE="$work/empty-cache" build "$work/again"
	package "$work/again" "$work/packages-again"
	cmp "$work/daybook" "$work/again"
	for p in "$work"/packages/*; do cmp "$p" "$work/packages-again/$(basename "$p")"; done
}

check_image() { scripts/release/image.sh "v$version" "$commit"; }
check_generated() { make sqlc-check; }
check_chart() { make test-chart; }
check_site() { make test-site; }
check_licences() { make licences; }
check_protocol() { go test -count=1 ./internal/dev/protocol; }
check_languages() { go test -count=1 ./examples/languages; }
check_application() { go test -count=1 -run '^TestAppRunsAsMade$' ./cmd/daybook/internal/newapp; }

# The dump of the newest release is upgraded under load beside workers of that release: by its own program where it is tagged, else by this one.
check_upgrade() {
	made program
	local old="$work/daybook" tag
	tag="v$(sed -n 's/^\tVersion = "\(.*\)"$/\1/p' internal/dev/released/released.go)"
	if git rev-parse --quiet --verify "refs/tags/$tag" >/dev/null; then
		git worktree add --quiet --detach "$work/released" "$tag"
		(cd "$work/released" && build "$work/daybook-released")
		old="$work/daybook-released"
	fi
	DAYBOOK_TEST_OLD_PROGRAM="$old" go test -count=1 -run '^TestUpgradeOfAReleaseUnderLoad$' ./cmd/daybook
}

check_snapshot() {
	make release-snapshot
	cd bin/release
	sha256sum --quiet --check SHA256SUMS
	local count
	for kind in '*.tar.gz 4' '*.zip 2' '*.deb 2' '*.rpm 2' '*.cdx.json 6'; do
		count="$(find . -maxdepth 1 -name "${kind% *}" | wc -l)"
		[ "$count" = "${kind#* }" ] || fail "$count files ${kind% *}, want ${kind#* }"
	done
	for bill in *.cdx.json; do grep -q 'pkg:golang/go.temporal.io/sdk@' "$bill" || fail "$bill does not name Temporal's SDK"; done
}

results=() failed=0
# section WHEN NAME FUNCTION: WHEN is always, or full for what --short leaves out.
section() {
	if [ "$1" = full ] && [ "$short" = 1 ] || [ "$only" != "  " ] && [[ "$only" != *" $2 "* ]]; then return; fi
	local began=$SECONDS result=ok
	printf '\n=== %s\n' "$2"
	bash -c "set -euo pipefail; $3" 2>&1 || if [ $? = 77 ]; then result=skipped; else result=FAILED failed=1; fi
	results+=("$(printf '%-14s %-7s %5d s' "$2" "$result" $((SECONDS - began)))")
}
export work heaviest most_exposed short
export -f fail build package made
export -f $(compgen -A function check_)

section always program check_program
section always weight check_weight
section always bill check_bill
section always units check_units
section always packages check_packages
section always licences check_licences
section full installed check_installed
section full upgrade check_upgrade
section full application check_application
section full protocol check_protocol
section full languages check_languages
section full image check_image
section full generated check_generated
section full chart check_chart
section full site check_site
section full reproducible check_reproducible
section full snapshot check_snapshot

printf '\n%-14s %-7s %7s\n' section result seconds
printf '%s\n' "${results[@]}"
exit "$failed"
