package console

// Patterns are the addresses that want a session, as http.ServeMux takes them.
func Patterns() []string { return newConsole(Options{}).patterns }
