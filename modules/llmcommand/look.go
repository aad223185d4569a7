package llmcommand

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/agentlog"
	"github.com/weirhq/weir/modules/internal/question"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

func lookCommand(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Bool("today", false, "Show the calls since midnight, and open no dashboard")
	f.String("since", "", "Show the calls since a time, a date or an age such as 7d, and open no dashboard")
	f.Bool("json", false, "Write JSON, and open no dashboard")
	f.String("listen", lookAddress, "Address of this machine on which to serve the dashboard")
	cmd.Args = cobra.NoArgs
	cmd.RunE = look
}

// usageTotal is what some calls add up to. Costs are list prices.
type usageTotal struct {
	Calls       int64               `json:"calls"`
	SubAgents   int64               `json:"sub_agent_calls"`
	Input       int64               `json:"input_tokens"`
	CacheRead   int64               `json:"cache_read_tokens"`
	CacheWrite  int64               `json:"cache_write_tokens"`
	Output      int64               `json:"output_tokens"`
	Cost        plugins.Cost        `json:"list_cost"`      // of the calls that have a price, null if none has
	Unpriced    int64               `json:"unpriced_calls"` // calls of models without a known price
	CacheSaving plugins.Cost        `json:"cache_savings"`  // what the cache saved, null if unknown
	sessions    map[string]struct{} // only of the sum of all calls
}

func (t *usageTotal) add(c *agentlog.Call, cost, saving plugins.Cost) {
	t.Calls++
	if c.SubAgent != "" {
		t.SubAgents++
	}
	t.Input += c.Usage.Input.N
	t.CacheRead += c.Usage.CacheRead.N
	t.CacheWrite += c.Usage.CacheWrite.N
	t.Output += c.Usage.Output.N
	if t.Cost = t.Cost.Plus(cost); !cost.Valid {
		t.Unpriced++
	}
	t.CacheSaving = t.CacheSaving.Plus(saving)
}

// row is the total as cells of a table.
func (t *usageTotal) row(name string) []string {
	cost := "-"
	if t.Cost.Valid {
		cost = formatCost(t.Cost.N)
	}
	if t.Unpriced > 0 {
		cost += fmt.Sprintf(" (%s unknown)", formatCount(t.Unpriced))
	}
	cached := "-"
	if t.Input > 0 {
		cached = fmt.Sprintf("%.0f%%", 100*float64(t.CacheRead)/float64(t.Input))
	}
	return []string{printable(name), formatCount(t.Calls), formatCount(t.Input), cached, formatCount(t.Output), cost}
}

// usageGroup is what the calls with one value of a field add up to.
type usageGroup struct {
	Value string `json:"value"`
	usageTotal
}

// usageGroups groups calls by a field.
type usageGroups struct {
	heading string
	of      func(*agentlog.Call) string
	values  map[string]*usageGroup
}

func look(cmd *cobra.Command, _ []string) error {
	if f := cmd.Flags(); !f.Changed("today") && !f.Changed("since") && !f.Changed("json") {
		return serveLook(cmd)
	}
	since, err := lookSince(cmd, time.Now())
	if err != nil {
		return err
	}
	index := ""
	if folder, err := lookFolder(); err == nil {
		index = filepath.Join(folder, lookIndex)
	}
	reader := agentlog.Open(index)
	if err := reader.Update(since); err != nil {
		return err
	}
	_ = reader.Save() // without an index, the next look reads all files
	calls, reports := reader.Calls(since)
	prices := catalog.Default()
	all := usageTotal{sessions: make(map[string]struct{})}
	groups := []*usageGroups{
		{heading: "day", of: func(c *agentlog.Call) string { return c.At.Local().Format(time.DateOnly) }},
		{heading: "model", of: func(c *agentlog.Call) string { return c.Model }},
		{heading: "project", of: func(c *agentlog.Call) string { return shortPath(c.Project) }},
		{heading: "branch", of: func(c *agentlog.Call) string { return c.Branch }},
	}
	for i := range groups {
		groups[i].values = make(map[string]*usageGroup)
	}
	for _, c := range calls {
		cost, saving := listPrice(prices, c)
		all.sessions[c.Agent+c.Session] = struct{}{}
		all.add(c, cost, saving)
		for _, g := range groups {
			value := g.of(c)
			group := g.values[value]
			if group == nil {
				group = &usageGroup{Value: value}
				g.values[value] = group
			}
			group.add(c, cost, saving)
		}
	}
	if asJSON, _ := cmd.Flags().GetBool("json"); asJSON {
		return writeLookJSON(cmd.OutOrStdout(), &all, groups, reports)
	}
	return writeLook(cmd.OutOrStdout(), &all, groups, reports)
}

// lookIndex is the file in lookFolder with what was read of the agents' files.
const lookIndex = "index"

// lookFolder returns the user's folder of what was read.
func lookFolder() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "weir", "look"), err
}

func lookSince(cmd *cobra.Command, now time.Time) (time.Time, error) {
	text, _ := cmd.Flags().GetString("since")
	today, _ := cmd.Flags().GetBool("today")
	switch {
	case today && text != "":
		return time.Time{}, misused("--today is --since midnight: leave one of them out")
	case today:
		year, month, day := now.Local().Date()
		return time.Date(year, month, day, 0, 0, 0, 0, time.Local), nil
	case text != "":
		at, err := question.ParseMoment(text, now)
		if err != nil {
			return time.Time{}, misused("--since: %w", err)
		}
		return time.UnixMilli(int64(at)), nil
	}
	return time.Time{}, nil
}

// makers are the providers whose list prices are used for a model if the file names none that has
// it, as gateways and frameworks have no prices.
var makers = []string{"anthropic", "openai", "gemini"}

// listPrice returns what a call costs without a subscription, and what the provider's cache saved.
func listPrice(prices *catalog.Catalog, c *agentlog.Call) (cost, saving plugins.Cost) {
	conditions := catalog.Conditions{At: c.At, Tier: c.Tier}
	for _, provider := range append([]string{c.Provider}, makers...) {
		if cost = prices.Cost(provider, c.Model, c.Usage, conditions); !cost.Valid {
			continue
		}
		for b := c.Beside; b != nil; b = b.Next {
			cost = cost.Both(prices.Cost(provider, cmp.Or(b.Model, c.Model), b.Usage, conditions))
		}
		return cost, prices.CacheSavings(provider, c.Model, c.Usage, conditions)
	}
	return plugins.Cost{}, plugins.Cost{}
}

// shortPath writes the home directory as ~.
func shortPath(path string) string {
	home, err := os.UserHomeDir()
	if rest, ok := strings.CutPrefix(path, home); err == nil && ok && (rest == "" || os.IsPathSeparator(rest[0])) {
		return "~" + filepath.ToSlash(rest)
	}
	return path
}

// sorted returns the groups: days in their order, others by what they cost.
func (g *usageGroups) sorted() []*usageGroup {
	return slices.SortedFunc(maps.Values(g.values), func(a, b *usageGroup) int {
		if g.heading == "day" {
			return cmp.Compare(a.Value, b.Value)
		}
		return cmp.Or(cmp.Compare(b.Cost.N, a.Cost.N), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Value, b.Value))
	})
}

func writeLookJSON(w io.Writer, all *usageTotal, groups []*usageGroups, reports []agentlog.Report) error {
	out := map[string]any{"total": all, "sessions": len(all.sessions), "agents": append([]agentlog.Report{}, reports...)}
	for _, g := range groups {
		out["by_"+g.heading] = append([]*usageGroup{}, g.sorted()...)
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", text)
	return err
}

// maxLookRows is how many groups a table shows: the last days, and the dearest others.
const maxLookRows = 15

func writeLook(w io.Writer, all *usageTotal, groups []*usageGroups, reports []agentlog.Report) error {
	for _, g := range groups {
		table := grid{
			w: w, limit: terminalWidth(w), headings: []string{strings.ToUpper(g.heading), "CALLS", "INPUT", "CACHED", "OUTPUT", "LIST COST"},
			right: []bool{false, true, true, true, true, true}, yields: []bool{true, false, false, false, false, false},
		}
		rows := g.sorted()
		if len(rows) == 0 || len(rows) == 1 && rows[0].Value == "" {
			continue
		}
		others := len(rows) - maxLookRows
		if others > 0 {
			if g.heading == "day" {
				rows = rows[others:]
			} else {
				rows = rows[:maxLookRows]
			}
		}
		for _, r := range rows {
			table.add(r.row(cmp.Or(r.Value, "-")))
		}
		if err := table.flush(); err != nil {
			return err
		}
		if others > 0 {
			fmt.Fprintf(w, "and %d more; --json has all\n", others)
		}
		fmt.Fprintln(w)
	}
	writeReports(w, reports)
	if all.Calls == 0 {
		return nil
	}
	total := all.row("")
	_, err := fmt.Fprintf(w, "Sessions: %s. Calls: %s, of which %s by sub-agents. Tokens: %s in, of which %s from caches, and %s out.\nList price: %s, which a subscription may cover.\n",
		formatCount(int64(len(all.sessions))), total[1], formatCount(all.SubAgents), total[2], total[3], total[4], total[5])
	return err
}

// writeReports says what was read of each agent.
func writeReports(w io.Writer, reports []agentlog.Report) {
	calls := 0
	for _, r := range reports {
		calls += r.Calls
		fmt.Fprintf(w, "%s: %s calls in %s files\n", r.Agent, formatCount(int64(r.Calls)), formatCount(int64(r.Files)))
		for _, reason := range slices.Sorted(maps.Keys(r.Skipped)) {
			fmt.Fprintf(w, "  %s skipped: %s\n", formatCount(int64(r.Skipped[reason])), printable(reason))
		}
	}
	if calls == 0 {
		fmt.Fprintln(w, "No calls of Claude Code, Codex, opencode or Gemini CLI are found.")
	}
}
