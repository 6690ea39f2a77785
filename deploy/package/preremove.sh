#!/bin/sh
# Runs before the package is removed (deb "remove", rpm 0) or upgraded, which stops nothing.
set -e
if { [ "$1" = remove ] || [ "$1" = 0 ]; } && [ -d /run/systemd/system ]; then
	systemctl disable --now daybook-worker daybook-serve
fi
