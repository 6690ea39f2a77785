#!/usr/bin/env bash
# Builds the container image, and runs it: scripts/release/image.sh VERSION COMMIT
#
# It ends with 77 where nothing can be built: without a container engine, or where the registries of the base images cannot be reached.
set -euo pipefail
for engine in docker podman none; do
	if [ "$engine" = none ]; then
		echo "no engine: neither docker nor podman works here"
		exit 77
	fi
	if "$engine" info >/dev/null 2>&1; then break; fi
done
for base in $(awk '$1 == "FROM" { print $2 }' Dockerfile); do
	if "$engine" image inspect "$base" >/dev/null 2>&1 || said="$("$engine" pull --quiet "$base" 2>&1)"; then continue; fi
	echo "$said"
	# A registry that answers knows no such image.
	if grep -qE 'manifest unknown|not found|denied' <<<"$said"; then exit 1; fi
	echo "no base image: $base"
	exit 77
done

image="daybook-check:$$"
trap '"$engine" image rm --force "$image" >/dev/null || true' EXIT
# Without it podman leaves the health check out.
export BUILDAH_FORMAT=docker
"$engine" build --build-arg "VERSION=$1" --build-arg "COMMIT=$2" --tag "$image" .
DAYBOOK_TEST_ENGINE="$engine" DAYBOOK_TEST_IMAGE="$image" go test -count=1 -v -run '^TestImageRuns$' ./cmd/daybook
