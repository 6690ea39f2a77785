#!/bin/sh
# Runs before the package is removed (deb "remove", rpm 0) or upgraded, which stops nothing.
set -e
if [ "$1" = remove ] || [ "$1" = 0 ]; then
	if [ -d /run/systemd/system ]; then
		systemctl disable --now daybook-worker daybook-serve
	elif command -v systemctl >/dev/null; then # in a chroot or an image nothing runs, and the links would be left
		systemctl disable daybook-worker daybook-serve
	fi
fi
