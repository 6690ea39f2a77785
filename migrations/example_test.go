package migrations_test

import (
	"errors"
	"fmt"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/migrations"
)

// Up brings a database to this build's schema, however old it is. Concurrent calls wait for each
// other, so that each instance of a program may call it when it starts.
func ExampleUp() {
	e := pgtest.NewEmptyExample()
	defer e.Close()
	ctx, databaseURL := e.Context(), e.DB.URL

	fmt.Println(migrations.Up(ctx, databaseURL))
	fmt.Println(migrations.Up(ctx, databaseURL))
	// Output:
	// <nil>
	// <nil>
}

// Newest is the number of the last step of Status.
func ExampleNewest() {
	e := pgtest.NewEmptyExample()
	defer e.Close()

	newest, err := migrations.Newest()
	if err != nil {
		panic(err)
	}
	steps, err := migrations.Status(e.Context(), e.DB.URL)
	fmt.Println(steps[len(steps)-1].Version == newest, err)
	// Output: true <nil>
}

// Verify says whether the schema is the one of this build, and whole. A worker does so before it
// works.
func ExampleVerify() {
	e := pgtest.NewEmptyExample()
	defer e.Close()
	ctx := e.Context()

	fmt.Println(errors.Is(migrations.Verify(ctx, e.Pool), migrations.ErrPending))
	if err := migrations.Up(ctx, e.DB.URL); err != nil {
		panic(err)
	}
	fmt.Println(migrations.Verify(ctx, e.Pool))
	// Output:
	// true
	// <nil>
}

func ExampleStatus() {
	e := pgtest.NewExample()
	defer e.Close()

	steps, err := migrations.Status(e.Context(), e.DB.URL)
	if err != nil {
		panic(err)
	}
	fmt.Println(steps[0].Version, steps[0].Applied)
	// Output: 1 true
}

// Down takes everything back, with the data.
func ExampleDown() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx := e.Context()

	fmt.Println(migrations.Down(ctx, e.DB.URL, migrations.DownOptions{All: true}))
	fmt.Println(errors.Is(migrations.Verify(ctx, e.Pool), migrations.ErrPending))
	// Output:
	// <nil>
	// true
}

// A right of a role that was revoked is named, for as long as the role is used.
func ExampleVerifyRoles() {
	e := pgtest.NewExample()
	defer e.Close()

	lacks, err := migrations.VerifyRoles(e.Context(), e.Pool)
	fmt.Println(len(lacks), err)
	// Output: 0 <nil>
}
