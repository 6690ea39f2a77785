package cli

import (
	"strings"
)

// nearest returns the name that is meant most likely where another one was written: the one with
// the fewest changed, missing, additional or swapped letters, of at most a third of them; of two,
// the one that begins with the same letter. Empty: none is near.
func nearest(written string, names []string) string {
	from := []rune(strings.ToLower(written))
	if len(from) == 0 {
		return ""
	}
	best, least := "", 2*(max(1, len(from)/3)+1)
	for _, name := range names {
		to := []rune(strings.ToLower(name))
		d := 2 * typos(from, to, least/2+1)
		if len(to) > 0 && to[0] != from[0] {
			d++
		}
		if d < least {
			best, least = name, d
		}
	}
	return best
}

// typos counts the letters that differ, or returns limit if there are as many.
func typos(a, b []rune, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		next[0] = i + 1
		for j := range b {
			same := 1
			if a[i] == b[j] {
				same = 0
			}
			next[j+1] = min(row[j+1]+1, next[j]+1, row[j]+same)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return min(limit, row[len(b)])
}
