#!/usr/bin/env bash
# gorm.io/gorm v1.31.2: a dry run sends no INSERT for the model, and runs the model's hooks all the same, with a real
# transaction. What AfterCreate writes through its tx by Exec is a dry run as well; what it writes through the
# connection of the statement (tx.Statement.ConnPool, as drivers, sqlc code and outbox libraries do) is written and
# committed. So Session(&gorm.Session{DryRun: true}) and ToSQL leave an outbox row for a model row that does not exist.
set -euo pipefail
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >go.mod <<'MOD'
module example.test/dryrun

go 1.24

require (
	github.com/glebarez/sqlite v1.11.0
	gorm.io/gorm v1.31.2
)
MOD
cat >main.go <<'GO'
package main

import (
	"fmt"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

type Invoice struct {
	ID    uint
	Total int64
}

func (i *Invoice) AfterCreate(tx *gorm.DB) error {
	if err := tx.Exec("INSERT INTO outbox (way) VALUES ('tx.Exec')").Error; err != nil {
		return err
	}
	_, err := tx.Statement.ConnPool.ExecContext(tx.Statement.Context, "INSERT INTO outbox (way) VALUES ('ConnPool')")
	return err
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	db, err := gorm.Open(sqlite.Open("file:dryrun.db"), &gorm.Config{Logger: logger.Discard})
	must(err)
	must(db.AutoMigrate(&Invoice{}))
	must(db.Exec("CREATE TABLE outbox (way TEXT)").Error)

	must(db.Session(&gorm.Session{DryRun: true}).Create(&Invoice{Total: 100}).Error)
	state(db, "DryRun")
	db.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Create(&Invoice{Total: 100}) })
	state(db, "ToSQL")
}

func state(db *gorm.DB, after string) {
	var invoices int64
	var ways []string
	must(db.Model(&Invoice{}).Count(&invoices).Error)
	must(db.Raw("SELECT way FROM outbox").Scan(&ways).Error)
	fmt.Printf("after %s: %d invoices, outbox %v\n", after, invoices, ways)
}
GO
export GOFLAGS=-mod=mod
go run . >output
cat output
diff output - <<'SEEN'
after DryRun: 0 invoices, outbox [ConnPool]
after ToSQL: 0 invoices, outbox [ConnPool ConnPool]
SEEN
