package handlers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/daybook-dev/daybook/internal/text/bom"
	"github.com/daybook-dev/daybook/internal/text/redact"
	"github.com/daybook-dev/daybook/models"
)

// Secrets finds secrets by name: in a variable of the environment, or else in a file. They are read
// when they are used, so that a file may be changed while the worker runs.
//
//	kind of secret         variable                              file in Dir
//	webhook signature      DAYBOOK_WEBHOOK_SECRET_<NAME>         <name>
//	webhook authorization  DAYBOOK_WEBHOOK_AUTHORIZATION_<NAME>  <name>.authorization
//	token of Airtable      DAYBOOK_AIRTABLE_TOKEN_<NAME>         <name>.airtable
//	access token of Plaid  DAYBOOK_PLAID_ACCESS_TOKEN_<NAME>     <name>.plaid
//	Slack                  DAYBOOK_SLACK_SECRET_<NAME>           <name>.slack
//	Discord                DAYBOOK_DISCORD_SECRET_<NAME>         <name>.discord
//	push to browsers       DAYBOOK_VAPID_SECRET_<NAME>           <name>.vapid
//	push to phones         DAYBOOK_FCM_SECRET_<NAME>             <name>.fcm
//	password for SMTP      DAYBOOK_SMTP_PASSWORD                 smtp.password
//
// A name has lower-case letters, digits, - and _; in the variable's name letters are upper-case,
// and - is _.
//
// A secret that a payload names is found only for the organizations that the name is bound to, so
// that none signs with another's secret:
//
//	variable                     DAYBOOK_SECRET_ORGS_<NAME>, with commas between the ids
//	file in Dir                  <name>.orgs, with an id on each line
//
// * binds it to all organizations. A secret without a binding is found for none.
type Secrets struct {
	// Dir is the directory of the files, as of a mounted secret; empty: there are none.
	Dir string
	// Lookup finds a variable by its whole name; nil: os.LookupEnv.
	Lookup func(name string) (value string, ok bool)
}

// environmentSecrets finds secrets by the variables given.
func environmentSecrets(variables map[string]string) Secrets {
	return Secrets{
		Dir: variables[environmentPrefix+"SECRETS_DIR"],
		Lookup: func(name string) (string, bool) {
			v, ok := variables[name]
			return v, ok
		},
	}
}

// secretName is what a payload may name a secret; it has nothing that leads to another directory or
// another kind of secret.
var secretName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// errNoSecret: the secret is not configured.
var errNoSecret = errors.New("no such secret")

// find returns the value of the variable, or else of the file. Its errors do not repeat a secret.
func (s Secrets) find(variable, file string) (string, error) {
	lookup := s.Lookup
	if lookup == nil {
		lookup = os.LookupEnv
	}
	if v, ok := lookup(variable); ok && strings.TrimSpace(v) != "" {
		return known(file, strings.TrimSpace(v)), nil
	}
	if s.Dir == "" {
		return "", fmt.Errorf("%w: set %s, or %sSECRETS_DIR to a directory that has a file %s", errNoSecret, variable,
			environmentPrefix, file)
	}
	b, err := os.ReadFile(filepath.Join(s.Dir, file))
	if err == nil {
		b, err = bom.Trim(b) // which PowerShell writes, and no one who compares the secret has
	}
	switch v := strings.TrimSpace(string(b)); {
	case errors.Is(err, fs.ErrNotExist), err == nil && v == "":
		return "", fmt.Errorf("%w: set %s, or write it to the file %s in %sSECRETS_DIR", errNoSecret, variable, file,
			environmentPrefix)
	case err != nil:
		return "", fmt.Errorf("read the secret %s: %w", file, err)
	default:
		return known(file, v), nil
	}
}

// known returns what was found, and keeps it out of logs. Bindings to organizations are no secrets.
func known(file, value string) string {
	if !strings.HasSuffix(file, bindings) {
		redact.Know(value)
	}
	return value
}

// bindings is the extension of files that bind a secret to organizations.
const bindings = ".orgs"

// named finds a secret that a payload of an organization names.
func (s Secrets) named(org, variable, name, extension string) (string, error) {
	if !secretName.MatchString(name) {
		return "", invalid("a secret's name has up to 63 lower-case letters, digits, - and _, and begins with a letter " +
			"or digit")
	}
	upper := secretVariable(name)
	v, err := s.find(environmentPrefix+variable+upper, name+extension)
	if errors.Is(err, errNoSecret) {
		return "", fail(models.CodeAuthenticationFailed, "%w", err)
	}
	if err != nil {
		return "", err
	}
	orgs, err := s.find(environmentPrefix+"SECRET_ORGS_"+upper, name+bindings)
	switch {
	case errors.Is(err, errNoSecret):
		return "", fail(models.CodeAuthenticationFailed,
			"the secret %s is bound to no organization: set %sSECRET_ORGS_%s to the organizations that may use it, or to * "+
				"for all", name, environmentPrefix, upper)
	case err != nil:
		return "", err
	case !bound(orgs, org):
		return "", fail(models.CodeAuthenticationFailed, "%w: the secret %s is not bound to the organization %s",
			errOtherSecret, name, clip(org))
	}
	return v, nil
}

// hasSecrets reports whether there is a secret of a kind, of whatever name: a variable that begins
// so, or a file with the extension.
func (s *environment) hasSecrets(variable, extension string) bool {
	for name, value := range s.Environment {
		if strings.HasPrefix(name, environmentPrefix+variable) && strings.TrimSpace(value) != "" {
			return true
		}
	}
	if s.secrets.Dir == "" {
		return false
	}
	files, err := filepath.Glob(filepath.Join(s.secrets.Dir, "*"+extension))
	return err == nil && len(files) > 0
}

// errOtherSecret: the secret belongs to other organizations.
var errOtherSecret = errors.New("not this organization's secret")

// bound reports whether a binding names an organization, or all.
func bound(orgs, org string) bool {
	for _, o := range strings.FieldsFunc(orgs, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' }) {
		if o = strings.TrimSpace(o); o == org || o == "*" {
			return true
		}
	}
	return false
}
