package console

import "slices"

// menuEntry is one line of the menu: Path is below Root.
type menuEntry struct{ Group, Name, Path string }

// menuOrder is the order of the menu, whichever subject's file adds its entries first.
var menuOrder = []struct {
	group string
	names []string
}{
	{"", []string{"Overview"}},
	{"Work", []string{"Jobs", "Accounting", "Tasks", "Dead letters"}},
	{"Ledger", []string{
		"Documents", "Open items", "Entries", "Journal", "Trial balance", "Statements", "VAT", "Accounts", "Rates", "Rules",
		"Periods", "Imports",
	}},
	{"Operate", []string{"Workers", "Queues", "Organizations", "Schedules", "Actions", "Tokens"}},
}

// menuGroup is a part of the menu with its heading, which the first part lacks.
type menuGroup struct {
	Name    string
	Entries []menuEntry
}

// addToMenu is called by the file of each subject as the program starts.
func (c *console) addToMenu(entries ...menuEntry) { c.pages.menu = append(c.pages.menu, entries...) }

// groupMenu puts the entries in menuOrder. A group or name that menuOrder lacks comes last.
func groupMenu(entries []menuEntry) []menuGroup {
	var groups []menuGroup
	for _, o := range menuOrder {
		groups = append(groups, menuGroup{Name: o.group})
	}
	for _, e := range entries {
		i := slices.IndexFunc(groups, func(g menuGroup) bool { return g.Name == e.Group })
		if i < 0 {
			i = len(groups)
			groups = append(groups, menuGroup{Name: e.Group})
		}
		groups[i].Entries = append(groups[i].Entries, e)
	}
	for i := range min(len(groups), len(menuOrder)) {
		place := func(e menuEntry) int {
			if at := slices.Index(menuOrder[i].names, e.Name); at >= 0 {
				return at
			}
			return len(menuOrder[i].names)
		}
		slices.SortStableFunc(groups[i].Entries, func(a, b menuEntry) int { return place(a) - place(b) })
	}
	return slices.DeleteFunc(groups, func(g menuGroup) bool { return len(g.Entries) == 0 })
}
