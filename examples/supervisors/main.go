// Command supervisors is an example: business processes that live in the database. It makes their
// schemas; `daybook worker` works their tasks.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/caarlos0/env/v11"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "supervisors:", err)
		os.Exit(1)
	}
}

// run makes the schemas in the database of DAYBOOK_DATABASE_URL.
func run(ctx context.Context) error {
	var settings struct {
		DatabaseURL string `env:"DAYBOOK_DATABASE_URL,required"`
	}
	if err := env.Parse(&settings); err != nil {
		return err
	}
	return migrate(ctx, settings.DatabaseURL)
}
