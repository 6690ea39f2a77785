package engine

// Tracer wraps what an engine works with, to make spans of what it does.
type Tracer interface {
	// Handlers wraps the handlers of a kind.
	Handlers(kind string, h Handlers) Handlers
	// Kind wraps the statements of a kind.
	Kind(k Kind) Kind
}

// traced has the engine work with what its tracer makes of its kind and its handlers. It is called before the engine works.
func (e *Engine) traced() {
	if t := e.options.Tracer; t != nil {
		e.handlers, e.kind = t.Handlers(e.kind.Name(), e.handlers), t.Kind(e.kind)
	}
}
