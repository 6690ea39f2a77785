package health

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/hosts"
)

// DefaultTimeout is how long one question to the database or to Temporal may take.
const DefaultTimeout = 2 * time.Second

// DefaultSnapshotAge is from what age on a transaction that is open is named: the queues' tables
// gather dead rows meanwhile, which each lease reads.
const DefaultSnapshotAge = time.Minute

// Options say what to ask. The zero value asks nothing.
type Options struct {
	// Pool is the database's; nil: it is not asked, and PoolError, if there is one, is why.
	Pool      *pgxpool.Pool
	PoolError error
	// Sessions says whether workers have sessions of their own by the addresses that the program has;
	// nil: it is not looked at.
	Sessions func(ctx context.Context) error
	// Temporal is asked for workflows and workers; nil: it is not asked, and TemporalError, if there
	// is one, is why. A lazy client will do.
	Temporal      client.Client
	TemporalError error
	// TemporalAddress is for people; empty: it is not named. Namespace is the client's; default
	// "default".
	TemporalAddress, Namespace string
	// OrgID limits what is said of jobs to an organization; empty: all of them.
	OrgID string
	// Alone says that the readers may know of OrgID and of no other organization, and operate nothing:
	// of what the whole installation has the report says only that it stops the work.
	Alone bool
	// Workflows are the workflows to ask for; nil: those that the documentation starts (Documented).
	Workflows []Workflow
	// Timeout is how long one question may take; 0: DefaultTimeout. A check asks more than one
	// question at most twice as long.
	Timeout time.Duration
	// SnapshotAge is from what age on an open transaction is named; 0: DefaultSnapshotAge.
	SnapshotAge time.Duration
	// Now is this machine's clock; nil: time.Now.
	Now func() time.Time
}

// Report is what was found.
type Report struct {
	// At is the database's clock, or, while that is not known, this machine's.
	At time.Time `json:"at"`
	// Working says that nothing keeps due work of any kind from being done, as far as the report
	// knows.
	Working bool `json:"working"`
	// Summary says in a line whether work gets done, and if not, why, and what to do.
	Summary string `json:"summary"`
	// Findings are what was found, the worst first: one of each cause.
	Findings []Finding `json:"findings"`
	// Consequences were found as well, and are there because of one of the findings, which says so.
	Consequences []Finding `json:"-"`
	// Checked are the checks that were made.
	Checked []Checked `json:"checked"`
	// Timeline is the one that the database's primary writes; 0: it is not known. PromotedAt is when a
	// sample first saw it; nil: that is not known, or it has always been so.
	Timeline   int64      `json:"-"`
	PromotedAt *time.Time `json:"-"`
	// Workflows are those that Temporal knows, kind by kind; nil: it was not asked, or did not
	// answer.
	Workflows []WorkflowState `json:"workflows"`
	// Waited is how long Temporal, and the servers of the address, were waited for before the database
	// was read.
	Waited time.Duration `json:"-"`
}

// Checked is one check that was made.
type Checked struct {
	// Name is what was looked at, in a few words.
	Name string `json:"name"`
	// Findings counts what it found.
	Findings int `json:"findings"`
	// Error is why it could not be made, or not to its end; empty: it was. Skipped says that another
	// finding is the reason.
	Error string `json:"error,omitempty"`
	// Note is what the check could not see; empty: it saw everything.
	Note    string `json:"note,omitempty"`
	Skipped bool   `json:"skipped,omitempty"`
	// TookMS is how long it took, in milliseconds.
	TookMS int64 `json:"took_ms"`
}

// Worst is the severity of the worst finding; empty: there is none.
func (r Report) Worst() Severity {
	if len(r.Findings) == 0 {
		return ""
	}
	return r.Findings[0].Severity
}

// Check asks the database and Temporal at the same time, and says what was found. It returns within
// a few seconds whatever is unavailable.
func Check(ctx context.Context, o Options) Report {
	r, _ := check(ctx, o, store.ReadSnapshot, nil)
	return r
}

// Then goes on with a report in the transaction of the checks of the database, behind them.
type Then func(ctx context.Context, tx pgx.Tx, r Report) error

// CheckThen is Check, and calls then, which may write. The error says that the transaction was not
// committed; where it could not begin or was lost, then is not called. Temporal is asked before the
// transaction begins.
func CheckThen(ctx context.Context, o Options, then Then) (Report, error) {
	return check(ctx, o, store.Begin, then)
}

// CheckAndRead is CheckThen for what only reads: the checks and then see one state of the database,
// so that what is shown beside the report does not contradict it.
func CheckAndRead(ctx context.Context, o Options, then Then) (Report, error) {
	return check(ctx, o, store.ReadSnapshot, then)
}

// beginning runs f in a transaction.
type beginning func(ctx context.Context, db store.Beginner, f func(tx pgx.Tx) error) error

func check(ctx context.Context, o Options, begin beginning, then Then) (Report, error) {
	o.Timeout, o.SnapshotAge = cmp.Or(o.Timeout, DefaultTimeout), cmp.Or(o.SnapshotAge, DefaultSnapshotAge)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Workflows == nil {
		o.Workflows = Documented()
	}
	p := &probe{
		Options: o, known: map[string]bool{}, open: map[string]bool{}, used: map[string]bool{},
		lastDone: map[string]time.Time{}, dead: map[string]int64{},
	}
	var temporal temporalAnswer
	var servers []hosts.Host
	var asking sync.WaitGroup
	asking.Go(func() { servers = askHosts(ctx, o.Pool) })
	asking.Go(func() { temporal = askTemporal(ctx, o) })
	began, waited := time.Now(), time.Duration(0)
	if then != nil {
		asking.Wait() // no transaction waits for it
		waited = time.Since(began)
	}
	report := sync.OnceValue(func() Report {
		p.unmade()
		asking.Wait()
		p.servers(servers)
		p.temporal(temporal)
		r := p.report()
		r.Waited = waited
		return r
	})
	err := p.database(ctx, begin, func(tx pgx.Tx) error {
		if then == nil {
			return nil
		}
		return then(ctx, tx, report())
	})
	return report(), err
}

// probe is one run of the checks. One goroutine has it.
type probe struct {
	Options
	// at is the database's clock; asked and answered are this machine's before and after it was read.
	at, asked, answered time.Time
	// tx is the transaction of checks that are made together; nil: each has its own.
	tx       pgx.Tx
	findings []Finding
	// consequences are the findings that another one explains.
	consequences []Finding
	checked      []Checked
	// note is what the check that is being made could not see.
	note   string
	states []WorkflowState
	// timeline is the primary's, promoted since when it is known to be.
	timeline int64
	promoted *time.Time
	// known are the kinds of which the database said what is due. open are those that have due or
	// leased jobs, used those that ever had one.
	known, open, used map[string]bool
	// completed counts what was completed in the last minute; -1: that is not known. completedMore:
	// there may have been more. oldest is what free due job has waited longest.
	completed     int64
	completedMore bool
	// lastDone is when a job of a kind was completed last, if that was in the last minute. dead
	// counts those that failed for good.
	lastDone map[string]time.Time
	dead     map[string]int64
	// free counts the due jobs that nothing on record holds back.
	free   int64
	oldest time.Duration
	// These count the due jobs that are not free: no worker has their type; none has been found for
	// their source or hooks; a pause, a limit or a fleet without workers holds them back.
	unhandled, foreign, heldBack int64
	// behind counts the jobs of sequences that stand still.
	behind int64
}

// check makes one check and notes what it found.
func (p *probe) check(name string, f func() ([]Finding, error)) {
	began := time.Now()
	found, err := f()
	found = sumUp(found)
	c := Checked{Name: name, Findings: len(found), TookMS: time.Since(began).Milliseconds(), Note: p.note}
	p.note = ""
	if err != nil {
		c.Error = err.Error()
	}
	p.add(found...)
	p.checked = append(p.checked, c)
}

// skip notes that a check makes no sense: because of another finding, or of what the report is about.
func (p *probe) skip(names ...string) {
	for _, name := range names {
		p.checked = append(p.checked, Checked{Name: name, Skipped: true})
	}
}

func (p *probe) add(found ...Finding) {
	for _, f := range found {
		f.Runbook = strings.ToLower(strings.ReplaceAll(string(f.Code), "_", "-"))
		p.findings = append(p.findings, f)
	}
}

// clock is the database's time, or this machine's.
func (p *probe) clock() time.Time {
	if p.at.IsZero() {
		return p.Now()
	}
	return p.at
}

// later is what the database's clock says by now: checks may have waited for seconds since it was
// read.
func (p *probe) later() time.Time {
	if p.at.IsZero() {
		return p.Now()
	}
	return p.at.Add(p.Now().Sub(p.answered))
}

// report sums up.
func (p *probe) report() Report {
	if p.Alone {
		p.alone()
	}
	p.oneCause()
	p.fillLanes()
	r := Report{
		At: p.clock(), Findings: p.findings, Consequences: p.consequences, Checked: p.checked,
		Timeline: p.timeline, PromotedAt: p.promoted, Workflows: p.states,
	}
	r.Working = !slices.ContainsFunc(r.Findings, Finding.stops)
	r.Summary = p.summary(r)
	if r.Findings == nil {
		r.Findings = []Finding{}
	}
	return r
}

// kinds are the kinds that the report is about.
func (p *probe) kinds() (names []string) {
	for _, q := range store.Queues() {
		if !p.Alone || q.Organizations() {
			names = append(names, q.Name)
		}
	}
	return names
}

// kinds are the names of all kinds, in the order in which operations show them.
func kinds() []string {
	var names []string
	for _, q := range store.Queues() {
		names = append(names, q.Name)
	}
	return names
}
