#!/bin/sh
# Runs when the package (deb, rpm) is installed or upgraded. It starts nothing and migrates nothing: which database is meant is not known before
# daybook.env was written, its schema may belong to another role, and workers of the old version may still run on it.
set -e

if ! getent passwd daybook >/dev/null; then
	useradd --system --user-group --no-create-home --home-dir /var/lib/daybook --shell /usr/sbin/nologin daybook
fi
for settings in /etc/daybook/daybook.env /etc/daybook/serve.env; do
	if [ -e "$settings" ] && [ "$(stat -c %G "$settings")" = root ]; then chgrp daybook "$settings"; fi
done
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi

# deb: "configure" and the version before, if any; rpm: how many versions are installed now.
if { [ "$1" = configure ] && [ -z "$2" ]; } || [ "$1" = 1 ]; then
	cat <<'NEXT'
Daybook is installed. Next:
  1. DAYBOOK_DATABASE_URL=postgres://OWNER… daybook migrate up --roles, and passwords for the roles
  2. write the addresses into /etc/daybook/daybook.env, and the server's own into /etc/daybook/serve.env
  3. systemctl enable --now daybook-worker daybook-serve
  4. DAYBOOK_DATABASE_URL=… TEMPORAL_ADDRESS=… daybook workflow start
NEXT
else
	cat <<'NEXT'
Another version of Daybook is installed; what runs is still the version before. Next:
  1. DAYBOOK_DATABASE_URL=postgres://OWNER… daybook migrate up (with --roles where you have roles); not when you go back
  2. systemctl try-restart daybook-worker daybook-serve
NEXT
	# One that was removed before, and not purged, was stopped with it.
	if [ -d /run/systemd/system ] && ! systemctl is-enabled -q daybook-worker daybook-serve 2>/dev/null; then
		echo "Neither unit starts by itself: systemctl enable --now daybook-worker daybook-serve"
	fi
fi
