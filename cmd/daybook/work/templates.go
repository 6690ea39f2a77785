package work

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/handlers"
	"github.com/daybook-dev/daybook/models/strictjson"
)

func templatesCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{
		Use:   "templates",
		Short: "List and preview the templates for mail",
		Long: "Lists and previews the templates for mail that jobs of the types email and notification use " +
			"(https://github.com/daybook-dev/daybook/blob/main/docs/job-types.md).",
	}
	dir := command.PersistentFlags().String("dir", "",
		"the directory of templates (default "+cli.MailTemplatesVariable+")")
	command.AddCommand(templatesListCommand(a, dir), templatesPreviewCommand(a, dir))
	return command
}

func templatesListCommand(a *cli.App, dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the templates",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			templates, err := cli.OpenTemplates(*dir)
			if err != nil {
				return err
			}
			all := templates.List()
			return a.Emit(map[string]any{"templates": all}, func(w io.Writer) error {
				t := cli.NewTable("NAME", "FORMS", "FROM")
				for _, m := range all {
					forms, from := "text, html", "the directory"
					switch {
					case !m.HTML:
						forms = "text"
					case !m.Text:
						forms = "html"
					}
					if m.BuiltIn {
						from = "Daybook"
					}
					t.Add(m.Name, forms, from)
				}
				return a.Print(w, t)
			})
		},
	}
}

func templatesPreviewCommand(a *cli.App, dir *string) *cobra.Command {
	var params, out string
	var html, text bool
	command := &cobra.Command{
		Use:   "preview NAME",
		Short: "Show what a template makes of parameters",
		Long: "Shows the mail that a template makes of the parameters in a file, as a worker makes it: a parameter that is missing is an error.\n" +
			"With --html or --text it prints that form alone. With --out it writes NAME.subject.txt, NAME.txt and " +
			"NAME.html to a directory.",
		Example: "  daybook templates preview welcome --params ada.json\n  daybook templates preview welcome --params " +
			"ada.json --out /tmp/preview",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if html && text {
				return cli.Usagef("--html and --text: want one of them")
			}
			templates, err := cli.OpenTemplates(*dir)
			if err != nil {
				return err
			}
			values, err := readParams(a, params)
			if err != nil {
				return err
			}
			mail, err := templates.Render(args[0], values)
			if err != nil {
				return cli.Usagef("%v", err)
			}
			if out != "" {
				return writeMail(a, out, args[0], mail)
			}
			switch {
			case html:
				_, err = io.WriteString(a.Stdout, mail.HTML)
				return err
			case text:
				_, err = io.WriteString(a.Stdout, mail.Text)
				return err
			}
			return a.Emit(mail, func(w io.Writer) error { return printMail(w, mail) })
		},
	}
	flags := command.Flags()
	flags.StringVar(&params, "params", "", "a file with the parameters, a JSON object; - is standard input")
	flags.BoolVar(&html, "html", false, "print the HTML alone")
	flags.BoolVar(&text, "text", false, "print the text alone")
	flags.StringVar(&out, "out", "", "a directory to write the mail to; it is made if it is missing")
	return command
}

// printMail shows a mail to people.
func printMail(w io.Writer, mail handlers.Mail) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Subject: %s\n", mail.Subject)
	if mail.Text != "" {
		fmt.Fprintf(&b, "\n%s\n", mail.Text)
	}
	if mail.HTML != "" {
		fmt.Fprintf(&b, "\n%s\n", mail.HTML)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// readParams reads a JSON object of parameters; an empty path has none.
func readParams(a *cli.App, path string) (handlers.TemplateParams, error) {
	if path == "" {
		return nil, nil
	}
	raw, err := a.ReadInput(path)
	if err != nil {
		return nil, fmt.Errorf("--params: %w", err)
	}
	var params handlers.TemplateParams
	if err := strictjson.UnmarshalSettings(raw, &params); err != nil {
		return nil, cli.Usagef("--params: %s is not a JSON object: %v", path, err)
	}
	return params, nil
}

// writeMail writes a mail's parts to files.
func writeMail(a *cli.App, dir, name string, mail handlers.Mail) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var paths []string
	for _, part := range []struct{ suffix, text string }{
		{".subject.txt", mail.Subject + "\n"},
		{".txt", mail.Text},
		{".html", mail.HTML},
	} {
		if part.text == "" {
			continue
		}
		path := filepath.Join(dir, name+part.suffix)
		if err := cli.WriteFile(path,
			func(w io.Writer) error { _, err := io.WriteString(w, part.text); return err }); err != nil {
			return err
		}
		paths = append(paths, path)
	}
	return a.Emit(map[string][]string{"files": paths}, func(w io.Writer) error {
		for _, path := range paths {
			if _, err := fmt.Fprintf(w, "wrote %s\n", path); err != nil {
				return err
			}
		}
		return nil
	})
}
