#!/usr/bin/env bash
# Installs a package on Debian under a systemd of its own, and does there what an operator does with it, from the first job to its removal:
# scripts/release/installed.sh DAYBOOK PACKAGE.deb NEWER.deb
#
# The root file system is this machine's with a layer above it, so that nothing here changes; systemd is process 1 of a process namespace of its own. It needs
# root, and a kernel with overlayfs and cgroup2. PostgreSQL and Temporal are those of `daybook dev`.
set -euo pipefail
program="$(realpath "$1")" package="$(realpath "$2")" newer="$(realpath "$3")"
work="$(mktemp -d /var/tmp/daybook-installed-XXXXXX)"
chmod 711 "$work"
booted="" cgroup=""
finish() {
	if [ -n "$booted" ]; then
		kill -KILL "$booted" 2>/dev/null || true
		wait "$unshared" || true
	fi
	if [ -n "${dev:-}" ]; then
		kill "$dev" 2>/dev/null || true
		wait "$dev" || true
	fi
	if [ -n "$cgroup" ]; then find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null || true; fi
	if mountpoint -q "$work/cgroup2"; then umount "$work/cgroup2"; fi
	rm -rf "$work"
}
trap finish EXIT
cgroup2="$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)"
if [ -z "$cgroup2" ]; then
	mkdir -p "$work/cgroup2"
	mount -t cgroup2 cgroup2 "$work/cgroup2"
	cgroup2="$work/cgroup2"
fi
cgroup="$cgroup2/daybook-installed-$$"

echo "start PostgreSQL and Temporal"
"$program" dev --no-worker --dir "$work/dev" --temporal-port 0 --ui-port 0 --postgres-port 0 --console-port 0 >"$work/dev.out" 2>"$work/dev.err" &
dev=$!
for ((i = 0; i < 240; i++)); do
	if grep -q 'export TEMPORAL_ADDRESS' "$work/dev.out"; then break; fi
	if ! kill -0 "$dev" 2>/dev/null; then cat "$work/dev.out" "$work/dev.err" >&2; exit 1; fi
	sleep 0.5
done
database="$(sed -n "s/^ *export DAYBOOK_DATABASE_URL=//p" "$work/dev.out" | tr -d "'\"" | head -n 1)"
temporal="$(sed -n "s/^ *export TEMPORAL_ADDRESS=//p" "$work/dev.out" | tr -d "'\"" | head -n 1)"

echo "start systemd"
mkdir -p "$work/upper" "$work/layer" "$work/root" "$cgroup"
cat >"$work/boot" <<'BOOT'
set -euo pipefail
work="$1"
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/layer" "$work/root"
cd "$work/root"
mount -t proc proc proc
mount --rbind /dev dev
mount -t sysfs -o ro sysfs sys
mount -t tmpfs tmpfs sys/fs 2>/dev/null && mkdir -p sys/fs/cgroup || true
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mount --bind proc/sys proc/sys && mount -o remount,bind,ro proc/sys
mkdir -p run/old
# What belongs to the machine is left to its own systemd.
for unit in systemd-{sysctl,udevd,modules-load,binfmt,timesyncd,remount-fs,random-seed,update-utmp,networkd,resolved,firstboot,machine-id-commit,udev-trigger,hwdb-update}.service \
	networking.service keyboard-setup.service console-setup.service apparmor.service kmod-static-nodes.service dev-hugepages.mount dev-mqueue.mount \
	sys-{kernel-debug,kernel-tracing,kernel-config,fs-fuse-connections}.mount proc-sys-fs-binfmt_misc.automount systemd-udevd-{control,kernel}.socket; do
	ln -sf /dev/null "etc/systemd/system/$unit"
done
: >etc/fstab
pivot_root . run/old
umount -l /run/old
exec env -i container=lxc PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --unit=basic.target --log-target=console --log-level=warning
BOOT
(
	echo "$BASHPID" >"$cgroup/cgroup.procs"
	exec unshare --mount --cgroup --ipc --uts --pid --fork --kill-child bash "$work/boot" "$work"
) >"$work/boot.out" 2>&1 </dev/null &
unshared=$!
for ((i = 0; i < 100; i++)); do
	booted="$(pgrep -P "$unshared" || true)"
	if [ -n "$booted" ] && nsenter -t "$booted" -m -p systemctl is-active -q basic.target 2>/dev/null; then break; fi
	if ! kill -0 "$unshared" 2>/dev/null; then cat "$work/boot.out" >&2; exit 1; fi
	sleep 0.3
done
inside() { nsenter -t "$booted" -m -p -C -i -u "$@"; }
if ! inside systemctl is-active -q basic.target; then
	cat "$work/boot.out" >&2
	inside systemctl list-jobs >&2
	exit 1
fi

failed() {
	echo "failed: $*" >&2
	inside systemctl status --no-pager daybook-worker daybook-serve >&2 || true
	inside journalctl --no-pager -u daybook-worker -u daybook-serve -n 40 >&2 || true
	exit 1
}
property() { inside systemctl show --value -p "$2" "$1"; }

# install PACKAGE.deb
install() { inside sh -c 'cat >/tmp/daybook.deb && dpkg -i /tmp/daybook.deb' <"$1"; }

# job_is_done: one is enqueued, and worked by what runs.
job_is_done() {
	local job state
	job="$(inside env DAYBOOK_DATABASE_URL="$database" daybook jobs enqueue cleanup --org acme --create --payload '{}' --json | sed -n 's/.*"id": *"\([^"]*\)".*/\1/p' | head -n 1)"
	for ((i = 0; i < 120; i++)); do
		state="$(DAYBOOK_DATABASE_URL="$database" "$program" jobs show "$job" --json | sed -n 's/.*"state": *"\([^"]*\)".*/\1/p' | head -n 1)"
		if [ "$state" = completed ]; then return; fi
		sleep 0.5
	done
	failed "the job is $state"
}

echo "install the package"
install "$package"
for settings in daybook.env serve.env; do
	[ "$(inside stat -c '%a %U %G' "/etc/daybook/$settings")" = "640 root daybook" ] || failed "the mode of $settings"
done
if inside systemctl is-active -q daybook-worker; then failed "it was started"; fi
if inside systemctl start daybook-worker 2>/dev/null; then failed "it starts without an address"; fi
inside systemctl stop daybook-worker

echo "start the worker and the server"
inside sh -c 'cat >>/etc/daybook/daybook.env' <<ENV
DAYBOOK_DATABASE_URL=$database
TEMPORAL_ADDRESS=$temporal
DAYBOOK_SERVE_FLAGS=--listen 127.0.0.1:0
ENV
inside systemctl enable --now daybook-worker daybook-serve || failed "start"
for unit in daybook-worker daybook-serve; do
	[ "$(property $unit ActiveState)" = active ] || failed "$unit is not active"
	[ "$(property $unit WatchdogUSec)" = 1min ] || failed "$unit has no watchdog"
	for ((i = 0; i < 50 && $(property $unit WatchdogTimestampMonotonic) == 0; i++)); do sleep 0.1; done
	[ "$(property $unit WatchdogTimestampMonotonic)" != 0 ] || failed "$unit does not say that it lives"
	echo "$unit: $(property $unit StatusText)"
done

echo "a job is done"
job_is_done

echo "what an alert is made of"
inside sh -c 'echo "DAYBOOK_WORKER_FLAGS=--metrics-listen 127.0.0.1:0" >>/etc/daybook/daybook.env && systemctl restart daybook-worker' || failed "restart"
metrics="$(inside journalctl --no-pager -u daybook-worker | sed -n 's|.*\(http://127.0.0.1:[0-9]*/metrics\).*|\1|p' | tail -n 1)"
for ((i = 0; i < 100; i++)); do
	if curl -fsS -o "$work/metrics" "$metrics" && grep -q '^daybook_sampled_timestamp_seconds' "$work/metrics"; then break; fi
	sleep 0.3
done
grep -q '^daybook_sampled_timestamp_seconds' "$work/metrics" || failed "no gauges at $metrics"
inside test -s /usr/share/doc/daybook/prometheus/works.yml || failed "the rules are not there"

echo "upgrade, and back"
before="$(property daybook-worker MainPID)"
for package in "$newer" "$package"; do
	install "$package" | tee "$work/said"
	grep -q 'what runs is still the version before' "$work/said" || failed "it does not say that nothing was restarted"
	if grep -q 'Neither unit' "$work/said"; then failed "it says that the units do not start by themselves"; fi
	[ "$(property daybook-worker MainPID)" = "$before" ] || failed "the worker was restarted"
	if [ "$package" = "$newer" ]; then inside env DAYBOOK_DATABASE_URL="$database" daybook migrate up; fi
	inside systemctl try-restart daybook-worker daybook-serve || failed "restart"
	before="$(property daybook-worker MainPID)"
	job_is_done
done

echo "what hangs is restarted"
inside mkdir -p /run/systemd/system/daybook-serve.service.d
printf '[Service]\nWatchdogSec=2s\nRestartSec=1s\n' | inside sh -c 'cat >/run/systemd/system/daybook-serve.service.d/test.conf'
inside systemctl daemon-reload
inside systemctl restart daybook-serve || failed "restart"
inside kill -STOP "$(property daybook-serve MainPID)"
for ((i = 0; i < 100; i++)); do
	if [ "$(property daybook-serve NRestarts)" = 1 ] && [ "$(property daybook-serve ActiveState)" = active ]; then break; fi
	sleep 0.5
done
[ "$(property daybook-serve NRestarts)" = 1 ] || failed "a server that hangs is left"

echo "stop"
began=$SECONDS
inside systemctl stop daybook-worker daybook-serve
[ $((SECONDS - began)) -le 35 ] || failed "stopping took $((SECONDS - began)) s"
[ "$(property daybook-worker Result) $(property daybook-serve Result)" = "success success" ] || failed "it did not stop in order"

echo "remove and purge"
inside dpkg -r daybook
inside test ! -e /usr/bin/daybook || failed "the program is left"
inside test -e /etc/daybook/daybook.env || failed "the settings are removed"
install "$package" | tee "$work/said"
grep -q 'Neither unit starts by itself' "$work/said" || failed "it does not say that nothing runs"
# As in a chroot or while an image is built: systemd does not run, and what is to start by itself is links alone.
inside systemctl enable daybook-worker daybook-serve
inside unshare --mount sh -c 'mount -t tmpfs tmpfs /run/systemd && dpkg -r daybook'
for unit in daybook-worker daybook-serve; do
	inside test ! -L "/etc/systemd/system/multi-user.target.wants/$unit.service" || failed "the link of $unit is left"
done
inside install -D /dev/null /var/lib/daybook/archive/jobs.json.gz
inside dpkg -P daybook
inside test -e /var/lib/daybook/archive/jobs.json.gz || failed "the archive is removed"
install "$package"
inside rm -r /var/lib/daybook/archive
inside dpkg -P daybook
inside test ! -e /etc/daybook -a ! -e /var/lib/daybook || failed "something is left"
echo "installed, upgraded, taken back, removed"
