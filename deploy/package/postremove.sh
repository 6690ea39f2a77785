#!/bin/sh
# Runs after the package was removed or purged. The user daybook stays, as files may belong to it; so does what is in /var/lib/daybook, also after
# a purge: it may be an archive, which nothing else has.
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
if [ "$1" = purge ]; then
	for dir in /var/lib/daybook /etc/daybook; do
		if [ -d "$dir" ]; then rmdir --ignore-fail-on-non-empty "$dir"; fi
	done
fi
