#!/usr/bin/env bash
# github.com/OpenPeeDeeP/depguard/v2 v2.2.1 (in golangci-lint v2.15.0): entries of a list are prefixes, and an entry stops
# counting for what sorts behind a longer entry that it is itself a prefix of. With deny: net, an import of net/mail is
# reported; with deny: net and net/http it is not, although nothing was allowed. So a second, more exact entry (with a
# message of its own, say) opens a hole in the first. An allow list fails the other way: net and net/http together refuse
# net/mail, which net alone allows. What sorts before the longer entry is not affected, so the same
# list works for some packages. Only the nearest entry in the order of the alphabet is compared. Nothing warns.
set -euo pipefail
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >go.mod <<'MOD'
module example.test/depguard

go 1.24

require github.com/OpenPeeDeeP/depguard/v2 v2.2.1
MOD
cat >main.go <<'GO'
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"

	"github.com/OpenPeeDeeP/depguard/v2"
	"golang.org/x/tools/go/analysis"
)

const source = `package app

import (
	_ "net/http"
	_ "net/http/httptest"
	_ "net/mail"
	_ "net/url"
)
`

// refused are the imports of the source that the list refuses.
func refused(list depguard.List) string {
	list.Files = []string{"$all"}
	analyzer, err := depguard.NewAnalyzer(&depguard.LinterSettings{"main": &list})
	if err != nil {
		panic(err)
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "/app/app.go", source, 0)
	if err != nil {
		panic(err)
	}
	var found []string
	_, err = analyzer.Run(&analysis.Pass{
		Analyzer: analyzer, Fset: files, Files: []*ast.File{file},
		Report: func(d analysis.Diagnostic) { found = append(found, strings.Split(d.Message, "'")[1]) },
	})
	if err != nil {
		panic(err)
	}
	return strings.Join(found, " ")
}

func main() {
	fmt.Println("deny net:", refused(depguard.List{Deny: map[string]string{"net": "no network"}}))
	fmt.Println("deny net, net/http:",
		refused(depguard.List{Deny: map[string]string{"net": "no network", "net/http": "use the client"}}))
	fmt.Println("allow net:", refused(depguard.List{ListMode: "strict", Allow: []string{"net"}}))
	fmt.Println("allow net, net/http:", refused(depguard.List{ListMode: "strict", Allow: []string{"net", "net/http"}}))
}
GO
export GOFLAGS=-mod=mod
go run . >output
cat output
diff output - <<'SEEN'
deny net: net/http net/http/httptest net/mail net/url
deny net, net/http: net/http net/http/httptest
allow net: 
allow net, net/http: net/mail net/url
SEEN
