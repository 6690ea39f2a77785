package events

// Join returns one sink for several, which are called in their order; nil ones are left out.
// Without any it returns nil, so that observing costs nothing.
func Join(sinks ...Sink) Sink {
	var all joined
	for _, s := range sinks {
		if s == nil {
			continue
		}
		if more, ok := s.(joined); ok {
			all = append(all, more...)
		} else {
			all = append(all, s)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}

// joined implements TurnSink: those that are no TurnSink are told of jobs alone.
type joined []Sink

// Observe implements Sink.
func (j joined) Observe(batch []Event) {
	for _, s := range j {
		s.Observe(batch)
	}
}

// ObserveTurn implements TurnSink.
func (j joined) ObserveTurn(t Turn) {
	j.each(func(s TurnSink) { s.ObserveTurn(t) })
}

// ObserveWakeup implements TurnSink.
func (j joined) ObserveWakeup(kind string, cause Cause) {
	j.each(func(s TurnSink) { s.ObserveWakeup(kind, cause) })
}

// ObserveLanes implements TurnSink.
func (j joined) ObserveLanes(kind string, active, idle int) {
	j.each(func(s TurnSink) { s.ObserveLanes(kind, active, idle) })
}

func (j joined) each(f func(TurnSink)) {
	for _, s := range j {
		if t, ok := s.(TurnSink); ok {
			f(t)
		}
	}
}
