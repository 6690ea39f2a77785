package store

import "time"

// MarkForTest is where a place's mark stands.
type MarkForTest struct {
	At time.Time
	ID string
}

// Marks returns how many places the store remembers, and their marks.
func (s *Store) Marks() (int, []MarkForTest) {
	s.ring.mu.Lock()
	defer s.ring.mu.Unlock()
	var all []MarkForTest
	for _, at := range s.ring.places {
		all = append(all, MarkForTest{At: at.mark.at, ID: at.mark.id})
	}
	return len(all), all
}
