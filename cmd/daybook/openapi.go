package main

import (
	"bytes"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/server"
)

func openAPICommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "openapi",
		Short:   "Print the OpenAPI document of the HTTP API, from which clients can be generated",
		Long:    "Prints the OpenAPI 3.1 document that `daybook serve` answers at /openapi.json. It needs no database.",
		Example: "  daybook openapi > openapi.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			document, err := server.OpenAPI(readVersion().Version)
			if err != nil {
				return err
			}
			var b bytes.Buffer
			if err := json.Indent(&b, document, "", "  "); err != nil {
				return err
			}
			b.WriteByte('\n')
			_, err = a.stdout.Write(b.Bytes())
			return err
		},
	}
}
