package engine

// LearnShort has the engine believe that jobs of a type are short.
func (e *Engine) LearnShort(jobType string) {
	e.pace.mu.Lock()
	defer e.pace.mu.Unlock()
	e.pace.types[jobType] = &typePace{inARow: learnAfter}
}
