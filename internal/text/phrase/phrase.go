// Package phrase writes durations, counts and lists as people read them. The command line, the
// console, doctor and `daybook top` show them alike, because all of them ask here.
package phrase

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration writes how long something took, in at most two units: "380 ms", "9.4 s", "3 min 10 s",
// "5 h 12 min", "4 d 3 h". The sign is left out.
func Duration(d time.Duration) string {
	switch d = d.Abs(); {
	case d == 0:
		return "0 s"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", max(d/time.Microsecond, 1))
	case d < time.Second:
		return fmt.Sprintf("%d ms", d/time.Millisecond)
	case d < 10*time.Second:
		tenths := d / (100 * time.Millisecond)
		if tenths%10 == 0 {
			return fmt.Sprintf("%d s", tenths/10)
		}
		return fmt.Sprintf("%d.%d s", tenths/10, tenths%10)
	}
	return whole(d)
}

// Age writes how long ago something was, or for how long it lasts already: whole seconds, in at
// most two units. Below a second it is "less than 1 s", and so is what a clock that is behind makes
// negative.
func Age(d time.Duration) string {
	if d < time.Second {
		return "less than 1 s"
	}
	return whole(d)
}

// whole writes whole seconds in the two largest units. The smaller one is left out when it is 0.
func whole(d time.Duration) string {
	two := func(large, small time.Duration, l, s string) string {
		text := fmt.Sprintf("%d %s", d/large, l)
		if rest := d % large / small; rest > 0 {
			text += fmt.Sprintf(" %d %s", rest, s)
		}
		return text
	}
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return two(time.Minute, time.Second, "min", "s")
	case d < 48*time.Hour:
		return two(time.Hour, time.Minute, "h", "min")
	}
	return two(24*time.Hour, time.Hour, "d", "h")
}

// Count writes a number with commas between groups of three digits: "12,345".
func Count(n int64) string { return Grouped(strconv.FormatInt(n, 10), ",") }

// Grouped puts a separator between groups of three digits of a number's text.
func Grouped(number, separator string) string {
	sign := ""
	if strings.HasPrefix(number, "-") {
		sign, number = "-", number[1:]
	}
	for i := len(number) - 3; i > 0; i -= 3 {
		number = number[:i] + separator + number[i:]
	}
	return sign + number
}

// Plural counts things: "1 job", "2 jobs", "12,345 jobs".
func Plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

// And writes "a", "a and b" or "a, b and c".
func And[T ~string](names []T) string { return list(names, "and") }

// Or writes "a", "a or b" or "a, b or c".
func Or[T ~string](names []T) string { return list(names, "or") }

func list[T ~string](names []T, last string) string {
	var b strings.Builder
	for i, name := range names {
		switch {
		case i == 0:
		case i == len(names)-1:
			b.WriteString(" " + last + " ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(string(name))
	}
	return b.String()
}
