package keep

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/moving/archive"
	"github.com/daybook-dev/daybook/internal/moving/erasure"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

// errErasureOpen: jobs of the scope were being worked when the erasure ended.
var errErasureOpen = failure.New(failure.Failure, "jobs of it are still being worked: erase again when they have ended")

// errNoErasure: no such erasure is on record.
var errNoErasure = failure.New(failure.NotFound, "no such erasure is on record")

func eraseCommand(a *cli.App) *cobra.Command {
	var scope store.EraseScope
	var o erasure.Options
	var address, link string
	var all, noArchive bool
	command := &cobra.Command{
		Use:   "erase --org ORG (--link KIND=ID | --all)",
		Short: "Erase the data of a person or an organization, with a proof",
		Long: "Erases what is linked to KIND=ID, or all of an organization: background jobs with their attempts, receipts and links, what is personal in documents\n" +
			"(--link document=ID, or --all), the texts of errors, what actions were about, and what the archive has of it. Jobs that wait are cancelled, those\n" +
			"that are being worked after their attempt. The ledger keeps its entries. What was erased, and what was kept and why, is on record: `daybook erasures`.\n\n" +
			"Whether there is a legal ground to erase, or a duty to keep, is for you to decide: Daybook does not. Run it " +
			"as the owner of the schema.",
		Example: "  daybook erase --org acme --link customer=ada --dry-run\n  daybook erase --org acme --link " +
			"customer=ada --ground \"request of 2026-03-14\"",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case scope.OrgID == "":
				return cli.Usagef("--org: name the organization")
			case all == (link != ""):
				return cli.Usagef("give either --link KIND=ID or --all")
			case o.Batch < 1 || o.Batch > 100_000:
				return cli.Usagef("--batch must be from 1 to 100000")
			case o.Wait < 0:
				return cli.Usagef("--wait must not be negative")
			}
			if link != "" {
				l, err := cli.ParseLink(link)
				if err != nil {
					return err
				}
				scope.Kind, scope.ID = l.Kind, l.ID
			}
			o.Actor = cli.SystemUser()
			return erase(c.Context(), a, scope, o, address, noArchive)
		},
	}
	flags := command.Flags()
	archiveFlag(command, &address)
	flags.StringVar(&scope.OrgID, "org", "", "the organization")
	flags.StringVar(&link, "link", "", "what is linked to this, such as customer=ada; document=ID is that document")
	flags.BoolVar(&all, "all", false, "all of the organization")
	flags.BoolVar(&o.DryRun, "dry-run", false, "count what would be erased, and change nothing")
	flags.StringVar(&o.Ground, "ground", "", "why it is erased, for the proof; without names")
	flags.DurationVar(&o.Wait, "wait", time.Minute, "how long to wait for jobs that are being worked")
	flags.IntVar(&o.Batch, "batch", 1000, "how many rows a transaction erases")
	flags.BoolVar(&noArchive, "no-archive", false, "leave the archive out; the proof says so")
	return command
}

// erase erases, and shows the proof.
func erase(ctx context.Context, a *cli.App, scope store.EraseScope, o erasure.Options, address string,
	noArchive bool,
) error {
	if address == "" && !noArchive {
		address = os.Getenv("DAYBOOK_ARCHIVE")
	}
	if address != "" {
		files, err := archive.Open(ctx, address)
		if err != nil {
			return err
		}
		defer func() { _ = files.Close() }()
		o.Archive = files
	}
	db, err := a.Open(ctx, 2)
	if err != nil {
		return err
	}
	defer db.Close()
	if o.Archive == nil && !noArchive {
		files, err := store.Archives(ctx, db.Pool, scope.OrgID)
		if err != nil {
			return err
		}
		if len(files) > 0 {
			return cli.Usagef("the archive has %s with rows of %s: name it with --archive or DAYBOOK_ARCHIVE, or leave it "+
				"out with --no-archive", phrase.Plural(int64(len(files)), "file", "files"), scope.OrgID)
		}
	}
	proof, ended := erasure.Erase(ctx, db.Pool, scope, o)
	err = a.EmitDone(ended, proof.ID == "", proof, func(w io.Writer) error {
		if o.DryRun {
			if _, err := fmt.Fprintln(w, "A dry run: nothing is erased."); err != nil {
				return err
			}
		}
		return showErasure(a, w, &proof)
	})
	if err == nil && proof.OpenJobs > 0 && !o.DryRun {
		err = errErasureOpen
	}
	return err
}

// showErasure prints a proof for people.
func showErasure(a *cli.App, w io.Writer, e *store.Erasure) error {
	finished := "not complete: erase again"
	if e.FinishedAt != nil {
		finished = cli.FormatTime(*e.FinishedAt)
	}
	t := cli.NewTable("ERASURE", e.ID)
	t.Add("organization", e.OrgID)
	t.Add("scope", e.ScopeText())
	t.Add("scope hash", e.ScopeHash)
	t.Add("salt", e.ScopeSalt)
	t.Add("asked for by", e.Actor+" ("+e.DBRole+")")
	t.Add("ground", e.Ground)
	t.Add("began", cli.FormatTime(e.StartedAt))
	t.Add("complete", finished)
	for _, table := range slices.Sorted(maps.Keys(e.Counts)) {
		t.Add("erased", fmt.Sprintf("%s: %d", table, e.Counts[table]))
	}
	for _, k := range e.Kept {
		t.Add("kept", fmt.Sprintf("%s: %d, because %s", k.What, k.Count, k.Reason))
	}
	if e.OpenJobs > 0 {
		t.Add("being worked", phrase.Plural(e.OpenJobs, "job", "jobs"))
	}
	return a.Print(w, t)
}

func erasuresCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{Use: "erasures", Short: "Show the proofs of what was erased"}
	command.AddCommand(erasuresListCommand(a), erasuresShowCommand(a))
	return command
}

// ErasureList is what `daybook erasures list --json` prints.
type ErasureList struct {
	Erasures []store.Erasure `json:"erasures"`
}

func erasuresListCommand(a *cli.App) *cobra.Command {
	var org string
	command := &cobra.Command{
		Use:   "list [--org ORG]",
		Short: "List erasures, the newest first",
		Args:  cobra.NoArgs,
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, _ []string) error {
			list, err := store.Erasures(c.Context(), db.Pool, "", org)
			if err != nil {
				return err
			}
			return a.Emit(ErasureList{list}, func(w io.Writer) error {
				t := cli.NewTable("ERASURE", "BEGAN", "ORGANIZATION", "SCOPE", "COMPLETE", "ERASED")
				for i := range list {
					e := &list[i]
					complete := "no"
					if e.FinishedAt != nil {
						complete = "yes"
					}
					t.Add(e.ID, cli.FormatTime(e.StartedAt), e.OrgID, e.ScopeText(), complete, countsText(e.Counts))
				}
				return a.Print(w, t)
			})
		}),
	}
	command.Flags().StringVar(&org, "org", "", "those of this organization")
	return command
}

func erasuresShowCommand(a *cli.App) *cobra.Command {
	var link string
	command := &cobra.Command{
		Use:   "show ID [--link KIND=ID]",
		Short: "Show the proof of an erasure, and whether it was about a link",
		Args:  cobra.ExactArgs(1),
		RunE: a.OnDatabase(func(c *cobra.Command, db *cli.Database, args []string) error {
			list, err := store.Erasures(c.Context(), db.Pool, args[0], "")
			if err != nil {
				return err
			}
			if len(list) == 0 {
				return fmt.Errorf("%w: %s: see `daybook erasures list`", errNoErasure, args[0])
			}
			if link != "" {
				l, err := cli.ParseLink(link)
				if err != nil {
					return err
				}
				if !erasure.About(list[0], store.EraseScope{OrgID: list[0].OrgID, Kind: l.Kind, ID: l.ID}) {
					return fmt.Errorf("%w: %s was not about %s", errNoErasure, args[0], link)
				}
			}
			return a.Emit(list[0], func(w io.Writer) error { return showErasure(a, w, &list[0]) })
		}),
	}
	command.Flags().StringVar(&link, "link", "", "fail unless the erasure was about this link")
	return command
}
