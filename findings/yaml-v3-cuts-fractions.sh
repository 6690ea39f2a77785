#!/usr/bin/env bash
# go.yaml.in/yaml/v3 v3.0.6 (and gopkg.in/yaml.v3 v3.0.1, from which it comes): a number with a fraction is decoded into
# an int field without an error. The fraction is cut off: 2.9 becomes 2, 0.9 becomes 0 and -1.5 becomes -1. KnownFields(true)
# changes nothing. encoding/json refuses the same value. A limit for which 0 means "none" is so switched off by 0.9.
# 1e3 becomes 1000 and 1e30, which does not fit, is an error. A pointer to an int is treated the same.
set -euo pipefail
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >go.mod <<'MOD'
module example.test/fractions

go 1.24

require (
	go.yaml.in/yaml/v3 v3.0.6
	gopkg.in/yaml.v3 v3.0.1
)
MOD
cat >main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"strings"

	kept "go.yaml.in/yaml/v3"
	old "gopkg.in/yaml.v3"
)

type settings struct {
	Attempts int  `yaml:"attempts" json:"attempts"`
	Parallel *int `yaml:"parallel" json:"parallel"`
}

func main() {
	for _, text := range []string{"2.9", "0.9", "-1.5", "1e3", "1e30"} {
		document := "attempts: " + text + "\nparallel: " + text + "\n"
		var a, b settings
		first := kept.NewDecoder(strings.NewReader(document))
		first.KnownFields(true)
		report("go.yaml.in/yaml/v3", text, first.Decode(&a), a)
		second := old.NewDecoder(strings.NewReader(document))
		second.KnownFields(true)
		report("gopkg.in/yaml.v3", text, second.Decode(&b), b)
	}
	var c settings
	fmt.Println("encoding/json refuses 2.9:", json.Unmarshal([]byte(`{"attempts": 2.9}`), &c) != nil)
}

func report(library, text string, err error, s settings) {
	if err != nil {
		fmt.Printf("%s %s: error\n", library, text)
		return
	}
	fmt.Printf("%s %s: %d and %d\n", library, text, s.Attempts, *s.Parallel)
}
GO
export GOFLAGS=-mod=mod
go run . >output
cat output
diff output - <<'SEEN'
go.yaml.in/yaml/v3 2.9: 2 and 2
gopkg.in/yaml.v3 2.9: 2 and 2
go.yaml.in/yaml/v3 0.9: 0 and 0
gopkg.in/yaml.v3 0.9: 0 and 0
go.yaml.in/yaml/v3 -1.5: -1 and -1
gopkg.in/yaml.v3 -1.5: -1 and -1
go.yaml.in/yaml/v3 1e3: 1000 and 1000
gopkg.in/yaml.v3 1e3: 1000 and 1000
go.yaml.in/yaml/v3 1e30: error
gopkg.in/yaml.v3 1e30: error
encoding/json refuses 2.9: true
SEEN
