package workflows

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// settingNames are the members of an input that people write.
var settingNames = []string{"batchSize", "pollIntervalSeconds", "concurrency"}

// UnmarshalJSON implements json.Unmarshaler. It notes a member that no input has: it is misspelt
// most often, as batch_size is, and the run would work with the default.
func (in *Input) UnmarshalJSON(text []byte) error {
	type input Input
	if err := json.Unmarshal(text, (*input)(in)); err != nil {
		return err
	}
	in.unknown = unknownMember(text, append([]string{"exitWhenEmpty", "carried"}, settingNames...))
	return nil
}

// UnmarshalJSON implements json.Unmarshaler, as that of Input does.
func (in *ConfigureInput) UnmarshalJSON(text []byte) error {
	type input ConfigureInput
	if err := json.Unmarshal(text, (*input)(in)); err != nil {
		return err
	}
	in.unknown = unknownMember(text, settingNames)
	return nil
}

// unknownMember returns the first member by name that is none of the known ones; empty: there is
// none.
func unknownMember(text []byte, known []string) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil {
		return ""
	}
	var unknown []string
	for name := range members {
		if !slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) }) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return ""
	}
	return slices.Min(unknown)
}

// refuseUnknown refuses a member that an input does not have.
func refuseUnknown(name string) error {
	if name == "" {
		return nil
	}
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf("the input has no member %q: want %s or exitWhenEmpty",
		name,
		strings.Join(settingNames, ", ")), ErrTypeInvalidInput, nil)
}

// refusesUnknown reports whether a run refuses an input's unknown member. What a run of newer code
// hands on may have one, and a run that older code began with one goes on.
func (in Input) refusesUnknown(ctx workflow.Context) bool {
	return in.unknown != "" && in.Carried == nil &&
		workflow.GetVersion(ctx, "unknown-input", workflow.DefaultVersion, 1) >= 1
}
