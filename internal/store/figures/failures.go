package figures

import (
	"cmp"

	"github.com/daybook-dev/daybook/models"
)

// Failures are the attempts of a type that did not end well, by error code.
type Failures struct {
	Kind, Type, Code string
	// Owner is who answers for the type; empty: not on record.
	Owner string
	// Dead counts the dead letters that there are; Failed, Retried and Reclaimed the attempts of the
	// history that ended so.
	Dead, Failed, Retried, Reclaimed int64
}

// reclaimed is the outcome of an attempt whose lease was ended because its worker is gone.
const reclaimed = "reclaimed"

// FailuresOf joins the dead letters of a sample with what attempts of a history that is read by
// type and by code failed with, in no order. Without a sample, zero Gauges, there are no dead
// letters and no owners.
func FailuresOf(g Gauges, bars []Bar) []Failures {
	type key struct{ kind, jobType, code string }
	places := map[key]int{}
	var all []Failures
	of := func(k key) *Failures {
		place, ok := places[k]
		if !ok {
			place = len(all)
			places[k] = place
			all = append(all, Failures{Kind: k.kind, Type: k.jobType, Code: k.code})
		}
		return &all[place]
	}
	for i := range bars {
		b := &bars[i]
		k := key{b.Kind, b.Type, b.Code}
		switch b.Outcome.Outcome {
		case string(models.OutcomeFailed):
			of(k).Failed += b.Count
		case string(models.OutcomeRetried):
			of(k).Retried += b.Count
		case reclaimed:
			k.code = cmp.Or(k.code, string(models.CodeReclaimed))
			of(k).Reclaimed += b.Count
		}
	}
	type named struct{ kind, jobType string }
	owners := map[named]string{}
	for _, kind := range g.Kinds {
		for _, d := range kind.DeadLetters {
			of(key{kind.Kind, d.Type, d.Code}).Dead += d.Count
		}
		for _, t := range kind.Types {
			owners[named{kind.Kind, t.Type}] = t.Owner
		}
	}
	for i := range all {
		all[i].Owner = owners[named{all[i].Kind, all[i].Type}]
	}
	return all
}
