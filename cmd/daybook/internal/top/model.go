package top

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"
)

// Reading is how a model gets its pictures.
type Reading interface {
	// Read reads how everything stands.
	Read(ctx context.Context) (Picture, error)
}

// view is one of the lists below the queues.
type view int

const (
	byType view = iota
	byCode
	byOrganization
	byWorker
	views
)

var viewNames = [views]string{"types", "failures", "organizations", "workers"}

// Model is the screen. It is a bubbletea model.
type Model struct {
	reading Reading
	ctx     context.Context
	every   time.Duration

	picture       Picture
	have          bool
	err           error
	held, asking  bool
	view          view
	from          int
	width, height int
	color         bool
}

// New returns a screen that reads a picture, and another one each time that so long has gone by.
// color says whether the terminal shows colours.
func New(ctx context.Context, r Reading, every time.Duration, color bool) Model {
	return Model{ctx: ctx, reading: r, every: every, color: color, width: 100, height: 40, asking: true}
}

type (
	readMsg struct {
		picture Picture
		err     error
	}
	tickMsg struct{}
)

func (m Model) read() tea.Msg {
	p, err := m.reading.Read(m.ctx)
	return readMsg{p, err}
}

// Init implements tea.Model.
func (m Model) Init() tea.Cmd { return m.read }

// Update implements tea.Model.
func (m Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case readMsg:
		m.asking, m.err = false, msg.err
		if msg.err == nil {
			m.picture, m.have = msg.picture, true
		}
		return m, tea.Tick(m.every, func(time.Time) tea.Msg { return tickMsg{} })
	case tickMsg:
		if m.held {
			return m, tea.Tick(m.every, func(time.Time) tea.Msg { return tickMsg{} })
		}
		m.asking = true
		return m, m.read
	case tea.KeyPressMsg:
		return m.key(msg)
	}
	return m, nil
}

func (m Model) key(msg tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	switch msg.String() {
	case "q", "esc", "ctrl+c":
		return m, tea.Quit
	case "p", "space":
		m.held = !m.held
	case "tab", "right", "l":
		m.view, m.from = (m.view+1)%views, 0
	case "shift+tab", "left", "h":
		m.view, m.from = (m.view+views-1)%views, 0
	case "1", "2", "3", "4":
		m.view, m.from = view(msg.String()[0]-'1'), 0
	case "down", "j":
		m.from++
	case "up", "k":
		m.from--
	case "pgdown":
		m.from += 10
	case "pgup":
		m.from -= 10
	case "home", "g":
		m.from = 0
	}
	m.from = max(min(m.from, m.rows()-1), 0)
	return m, nil
}

// rows is how many rows the list has.
func (m Model) rows() int {
	return [views]int{
		len(m.picture.Types), len(m.picture.Failures), len(m.picture.Organizations),
		len(m.picture.Leases),
	}[m.view]
}

// View implements tea.Model.
func (m Model) View() tea.View {
	v := tea.NewView(m.text())
	v.AltScreen = true
	v.WindowTitle = "daybook top"
	return v
}
