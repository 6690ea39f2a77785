#!/usr/bin/env bash
# Writes the manual pages, the completions and the licences of a release: scripts/release-files.sh FOLDER SECONDS
# SECONDS (since 1970) is the time of the commit, which all of them have, so that a release can be built again byte for byte.
# DAYBOOK names the program that writes them; without it, it is run from the code.
set -euo pipefail
folder="$1" epoch="$2"
read -r -a daybook <<<"${DAYBOOK:-go run ./cmd/daybook}"
rm -rf "$folder"
mkdir -p "$folder/completions"
SOURCE_DATE_EPOCH="$epoch" "${daybook[@]}" man "$folder/man" >/dev/null
gzip -9n "$folder"/man/*.1
for shell in bash zsh fish powershell; do "${daybook[@]}" completion "$shell" >"$folder/completions/daybook.$shell"; done
go run -C tools/security ./licences -C ../.. -write "$(realpath "$folder")/THIRD_PARTY_LICENSES" ./cmd/daybook >/dev/null
find "$folder" -exec touch -d "@$epoch" {} +
