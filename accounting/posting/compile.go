package posting

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"cel.dev/cel-go/cel"
	"go.yaml.in/yaml/v3"

	"github.com/daybook-dev/daybook/models"
)

// compiler turns the tree of a rule set's file into rules. It goes on after a problem, so that all
// are found at once. It does not report again what the schema has reported.
type compiler struct {
	src      *source
	problems []Problem
	rule     string // where problems are found
	line     string
	env      *environment // of the line; nil: outside of one

	aliases map[string]string
	maps    map[mapKey]*accountMap
	used    map[string]bool // maps that some line uses
}

// mapKey names one compiled form of a map. A map has several, because its conditions see the
// variables of the line that uses it.
type mapKey struct {
	name string
	as   string
	each list
}

func (c *compiler) report(at Place, format string, args ...any) {
	c.problems = append(c.problems,
		Problem{Place: at, Rule: c.rule, RuleLine: c.line, Message: fmt.Sprintf(format, args...)})
}

func (c *compiler) compile() *RuleSet {
	root := c.src.root
	if accounts := child(root, "accounts"); accounts != nil && accounts.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(accounts.Content); i += 2 {
			c.aliases[accounts.Content[i].Value] = accounts.Content[i+1].Value
			c.noExpression(scalar{value: accounts.Content[i+1].Value, place: placeOf(accounts.Content[i+1])})
		}
	}
	rs := &RuleSet{name: c.src.textAt(root, "ruleset")}
	nodes := items(child(root, "rules"))
	byID := make(map[string]*rule, len(nodes))
	for _, n := range nodes {
		r := c.compileRule(n)
		if first, ok := byID[r.id]; ok && r.id != "" {
			c.report(r.place, "the rule id %q is taken by the rule at %v; give each rule an id of its own", r.id, first.place)
		} else {
			byID[r.id] = r
		}
		rs.rules = append(rs.rules, r)
	}
	for i, n := range nodes {
		c.inherit(rs.rules[i], n, nodes, byID)
	}
	c.rule, c.line = "", ""
	if maps := child(root, "maps"); maps != nil && maps.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(maps.Content); i += 2 {
			if name := maps.Content[i]; !c.used[name.Value] {
				c.report(placeOf(name), "no rule line uses the map %q; use it or remove it", name.Value)
			}
		}
	}
	if len(c.problems) == 0 {
		for _, r := range rs.rules {
			r.reads = r.readBy()
		}
		rs.accounts = accountCodes(rs.rules)
	}
	return rs
}

func (c *compiler) compileRule(n *yaml.Node) *rule {
	r := &rule{id: c.src.textAt(n, "id"), place: placeOf(n), negate: c.src.textAt(n, "negate") == "true"}
	r.nothing = c.src.textAt(n, "posts") == "nothing"
	c.rule, c.line = r.id, ""
	env, err := newEnvironment("", nil)
	if err != nil {
		c.report(r.place, "the expression language cannot be set up: %v", err)
		return r
	}
	r.when = c.expression(env, n, "when", cel.BoolType)
	r.date = c.expression(env, n, "date", cel.TimestampType)
	if x := child(n, "rounding"); x != nil {
		r.rounding = &rounding{place: placeOf(x), account: c.account(x)}
		r.rounding.maxMinor, _ = strconv.ParseInt(c.src.textAt(x, "max_minor"), 10, 64) // the schema has checked it
	}
	if x := child(n, "exchange"); x != nil {
		r.exchange = &exchange{place: placeOf(x), account: c.account(x)}
	}
	ids := map[string]bool{}
	for _, x := range items(child(n, "lines")) {
		l := c.compileLine(x)
		switch {
		case keptLines[l.id] != "":
			c.report(l.place, "the line id %q is kept for %s; choose another", l.id, keptLines[l.id])
		case ids[l.id] && l.id != "":
			c.report(l.place, "the line id %q is taken; give each line of a rule an id of its own", l.id)
		}
		ids[l.id] = true
		r.lines = append(r.lines, l)
	}
	c.line = ""
	return r
}

// inherit fills a rule from the one that it is like, and sets the date if neither has one.
func (c *compiler) inherit(r *rule, n *yaml.Node, nodes []*yaml.Node, byID map[string]*rule) {
	c.rule, c.line = r.id, ""
	like, ok := c.src.scalarAt(n, "like")
	switch {
	case r.nothing:
		c.postsNothing(n)
	case ok:
		model := byID[like.value]
		switch {
		case model == nil:
			c.report(like.place, "there is no rule %q to be like; correct the id", like.value)
			return
		case model == r:
			c.report(like.place, "a rule cannot be like itself; name another")
			return
		case model.nothing:
			c.report(like.place, "the rule %q posts nothing; name one that has lines", like.value)
			return
		case len(r.lines) > 0:
			c.report(like.place, "a rule has either lines or like; remove one of them")
			return
		}
		for _, m := range nodes {
			if id, chained := c.src.scalarAt(m, "id"); chained && id.value == like.value && child(m, "like") != nil {
				c.report(like.place, "the rule %q is itself like another; name the one that has the lines", like.value)
				return
			}
		}
		r.lines = model.lines
		if r.date == nil {
			r.date = model.date
		}
		if r.rounding == nil {
			r.rounding = model.rounding
		}
		if r.exchange == nil {
			r.exchange = model.exchange
		}
	case child(n, "lines") == nil:
		c.report(r.place, "the rule posts nothing; give it lines, or like with the id of a rule that has them; if that "+
			"is meant, posts: nothing says so")
	}
	if r.date == nil {
		f := documentObject.lookup("issue_date")
		r.date = &expression{place: r.place, plain: f}
	}
}

// postsNothing refuses what a rule that posts nothing has no use for.
func (c *compiler) postsNothing(n *yaml.Node) {
	for _, key := range []string{"lines", "like", "negate", "rounding", "exchange"} {
		if child(n, key) != nil {
			c.report(placeOf(keyNode(n, key)), "a rule that posts nothing has no %s; remove it, or posts", key)
		}
	}
}

func (c *compiler) compileLine(n *yaml.Node) *line {
	l := &line{id: c.src.textAt(n, "id"), place: placeOf(n), side: models.Side(c.src.textAt(n, "side"))}
	c.line = l.id
	element := c.list(l, n)
	env, err := newEnvironment(l.as, element)
	if err != nil {
		c.report(l.place, "the variable %q cannot be declared: %v", l.as, err)
		return l
	}
	c.env = env
	defer func() { c.env = nil }()
	l.amount = c.expression(env, n, "amount", cel.IntType)
	l.currency = c.expression(env, n, "currency", cel.StringType)
	c.constantCurrency(l.currency)
	l.when = c.expression(env, n, "if", cel.BoolType)
	l.dimensions = c.dimensions(env, child(n, "dimensions"))
	c.determination(env, l, n)
	return l
}

// determination reads which accounts the line posts to: account, map or split.
func (c *compiler) determination(env *environment, l *line, n *yaml.Node) {
	name, hasMap := c.src.scalarAt(n, "map")
	parts := child(n, "split")
	switch hasAccount := child(n, "account") != nil; {
	case hasMap && (hasAccount || parts != nil):
		c.used[name.value] = true
		c.report(name.place, "a line has either an account or a map or a split; keep one of them")
	case hasAccount && parts != nil:
		c.report(placeOf(parts), "a line has either an account or a map or a split; keep one of them")
	case hasMap:
		l.accounts = c.accountMap(env, l, name)
	case parts != nil:
		l.split = c.split(env, parts)
	case hasAccount:
		l.account = c.account(n)
	default:
		c.report(l.place, "the line names no account; add account, map for one that depends on the document, or split "+
			"for several")
	}
}

// dimensions reads what a line gives to its entries. The schema has checked the keys.
func (c *compiler) dimensions(env *environment, n *yaml.Node) []dimension {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	var all []dimension
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		text, ok := c.src.scalarAt(n, key)
		if !ok {
			continue
		}
		x, problems := compileExpression(env, text, cel.StringType, "dimensions."+key)
		for _, p := range problems {
			p.Rule, p.RuleLine = c.rule, c.line
			c.problems = append(c.problems, p)
		}
		if x == nil {
			continue
		}
		if x.constant != nil {
			value, _ := x.text(nil) // its type is checked
			if err := models.CheckDimension(key, value); err != nil {
				c.report(x.place, "%v", err)
			}
		}
		all = append(all, dimension{key: key, value: x})
	}
	slices.SortFunc(all, func(a, b dimension) int { return cmp.Compare(a.key, b.key) })
	return all
}

// split reads the parts of a split. The schema has checked shares that are numbers.
func (c *compiler) split(env *environment, n *yaml.Node) *split {
	s := &split{}
	for _, part := range items(n) {
		s.accounts = append(s.accounts, c.account(part))
		s.places = append(s.places, placeOf(part))
		x := c.expression(env, part, "share", cel.IntType)
		s.shares = append(s.shares, x)
		if x == nil || x.constant == nil {
			continue
		}
		share, err := x.integer(nil)
		if err != nil || share < 1 || share > maxShare {
			c.report(x.place, "share: %d is out of range; a constant share is from 1 to %d", share, maxShare)
			continue
		}
		s.fixed = append(s.fixed, uint64(share))
	}
	if len(s.fixed) < len(s.shares) {
		s.fixed = nil
	}
	return s
}

// list reads each and as, and returns the type of the element; nil: the line runs once.
func (c *compiler) list(l *line, n *yaml.Node) *object {
	as, named := c.src.scalarAt(n, "as")
	var element *object
	switch c.src.textAt(n, "each") {
	case "doc.lines":
		l.each, l.as, element = documentLines, "line", lineObject
	case "doc.taxes":
		l.each, l.as, element = documentTaxes, "tax", taxObject
	default:
		if named {
			c.report(as.place, "as names the element of each; add each or remove as")
		}
		return nil
	}
	if named {
		l.as = as.value
	}
	if _, mode := roundingValues[l.as]; l.as == documentVariable || reservedWords[l.as] || mode {
		c.report(as.place, "%q has a meaning of its own in expressions; choose another name", l.as)
		l.as = "element"
	}
	return element
}

// reservedWords are the identifiers that CEL's grammar keeps for itself.
var reservedWords = map[string]bool{
	"as": true, "break": true, "const": true, "continue": true, "else": true, "false": true, "for": true,
	"function": true, "if": true, "import": true, "in": true, "let": true, "loop": true, "namespace": true,
	"null": true, "package": true, "return": true, "true": true, "var": true, "void": true, "while": true,
}

// accountMap compiles the map for the variables that the line has.
func (c *compiler) accountMap(env *environment, l *line, name scalar) *accountMap {
	c.used[name.value] = true
	node := child(child(c.src.root, "maps"), name.value)
	if node == nil {
		c.report(name.place, "there is no map %q; add it under maps or correct the name", name.value)
		return nil
	}
	key := mapKey{name.value, l.as, l.each}
	if m, ok := c.maps[key]; ok {
		return m
	}
	m := &accountMap{name: name.value, place: placeOf(node)}
	c.maps[key] = m
	for _, row := range items(node) {
		r := mapRow{when: c.expression(env, row, "when", cel.BoolType), account: c.account(row)}
		m.rows = append(m.rows, r)
		if r.when == nil {
			continue
		}
		for _, read := range r.when.reads {
			if !slices.Contains(m.reads, read) {
				m.reads = append(m.reads, read)
			}
		}
	}
	return m
}

// account returns the code of the key account: that of the alias, or the text itself.
func (c *compiler) account(n *yaml.Node) string {
	text, _ := c.src.scalarAt(n, "account")
	if code, ok := c.aliases[text.value]; ok {
		return code
	}
	c.noExpression(text)
	return text.value
}

// noExpression reports an expression where an account is named: it would be the code of an account
// that no chart has.
func (c *compiler) noExpression(text scalar) {
	if isExpression(text.value, c.env) {
		c.report(text.place, "account takes an alias or the code of an account, and %s is an expression; an account that "+
			"depends on the document is determined "+
			"by a map: name it with map, and give it a row with when and account for each account", text.value)
	}
}

// constantCurrency reports a currency that no document can be posted in.
func (c *compiler) constantCurrency(x *expression) {
	if x == nil || x.constant == nil {
		return
	}
	if code, err := x.text(nil); err != nil {
		c.report(x.place, "currency: %v", err)
	} else if err := models.CheckCurrency(code, models.Date{}); err != nil {
		c.report(x.place, "currency: %v", err)
	}
}

// expression compiles the text under the key; nil: there is none, or it has a problem.
func (c *compiler) expression(env *environment, n *yaml.Node, key string, want *cel.Type) *expression {
	text, ok := c.src.scalarAt(n, key)
	if !ok {
		return nil
	}
	x, problems := compileExpression(env, text, want, key)
	for _, p := range problems {
		p.Rule, p.RuleLine = c.rule, c.line
		c.problems = append(c.problems, p)
	}
	return x
}
