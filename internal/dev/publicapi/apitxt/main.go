// Command apitxt prints api.txt: what the module exports, one name a line. `make api` writes the
// file with it.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/daybook-dev/daybook/internal/dev/publicapi"
)

func main() {
	packages, err := publicapi.Load(context.Background(), ".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "apitxt:", err)
		os.Exit(1)
	}
	for _, line := range publicapi.Lines(packages) {
		fmt.Println(line)
	}
}
