package web

import (
	"html/template"
	"net/http"
	"time"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/view"
)

type overviewPage struct {
	layout
	Redis             view.Redis
	Degraded          string
	Alive             int // nodes
	Totals            []total
	Tasks             []taskRow
	Nodes             []nodeRow
	Firings, Lateness template.HTML
}

func (overviewPage) name() string { return "overview" }

// total is a figure at the top of the page, and where its jobs are listed.
type total struct {
	Name, Path, Class string
	N                 int64
}

// taskRow is a task, and how many of its pending jobs are due when: overdue, within a
// minute, an hour, a day, and later.
type taskRow struct {
	view.Task
	Due [5]int64
}

type nodeRow struct {
	view.Node
	StartedAt time.Time
}

func (s *Server) overviewPage(r *http.Request) (content, error) {
	ctx := r.Context()
	o, err := s.overview(ctx)
	if err != nil {
		return nil, err
	}
	horizons, _, err := s.cfg.Client.Horizons(ctx, 0, time.Minute, time.Hour, 24*time.Hour)
	if err != nil {
		return nil, err
	}
	minutes := s.cfg.History.minutes()
	p := &overviewPage{
		layout: layout{Title: "Overview", Live: true}, Redis: view.AskRedis(ctx, s.cfg.Redis), Degraded: s.cfg.Status.deaf(),
		Firings: firingsChart(minutes), Lateness: latenessChart(minutes),
	}
	p.Tasks = rowsOf(o.Tasks, horizons)
	p.Totals = totalsOf(p.Tasks)
	for _, n := range o.Nodes {
		started, _ := time.Parse(time.RFC3339, n.Started) // not told: the zero time
		p.Nodes = append(p.Nodes, nodeRow{n, started})
		if n.Alive {
			p.Alive++
		}
	}
	return p, nil
}

func rowsOf(tasks []view.Task, horizons []client.Horizon) []taskRow {
	byTask := make(map[string]client.Horizon)
	for _, h := range horizons {
		byTask[h.Task] = h
	}
	rows := make([]taskRow, 0, len(tasks))
	for _, t := range tasks {
		row := taskRow{Task: t}
		before := int64(0)
		for i, n := range byTask[t.Task].Within {
			row.Due[i], before = max(0, n-before), n
		}
		row.Due[0] = byTask[t.Task].Overdue
		row.Due[4] = max(0, t.Pending-before) // counted a moment apart
		rows = append(rows, row)
	}
	return rows
}

func totalsOf(tasks []taskRow) []total {
	var pending, overdue, running, retrying, dead int64
	for _, t := range tasks {
		pending += t.Pending
		overdue += t.Due[0]
		running += t.Running
		retrying += t.Retrying
		dead += t.Dead
	}
	class := func(n int64) string {
		if n > 0 {
			return "alarm"
		}
		return ""
	}
	return []total{
		{"pending", "/jobs", "", pending},
		{"overdue", "/jobs", class(overdue), overdue},
		{"running", "/jobs?state=running", "", running},
		{"retrying", "/jobs?state=retrying", "", retrying},
		{"dead", "/dead", class(dead), dead},
	}
}
