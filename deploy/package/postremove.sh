#!/bin/sh
# Runs after the package was removed or purged. The user daybook stays, as files may belong to it; so does what is in /var/lib/daybook, until a purge.
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
if [ "$1" = purge ]; then
	rm -rf /var/lib/daybook
	if [ -d /etc/daybook ]; then rmdir --ignore-fail-on-non-empty /etc/daybook; fi
fi
