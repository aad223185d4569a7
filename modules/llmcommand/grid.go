package llmcommand

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"
	"golang.org/x/text/width"

	"github.com/weirhq/weir/plugins"
)

// grid lays rows out in columns. Widths grow with what was shown and never
// shrink, so that rows which come later stand under the earlier ones.
type grid struct {
	w io.Writer
	// limit is the width of the terminal, 0 for none.
	limit    int
	headings []string
	right    []bool // which columns align right
	points   []bool // which columns align at the decimal point
	yields   []bool // which columns give way if there is a limit
	widths   []int
	decimals []int // how many characters the longest fraction of a column has
	rows     [][]string
	headed   bool
}

func (g *grid) add(row []string) { g.rows = append(g.rows, row) }

// flush prints the rows that were added, under the headings at first.
func (g *grid) flush() error {
	g.alignPoints()
	if !g.headed {
		g.rows = append([][]string{g.headings}, g.rows...)
		g.headed = true
	}
	if g.widths == nil {
		g.widths = make([]int, len(g.headings))
	}
	for _, row := range g.rows {
		for i, cell := range row {
			g.widths[i] = max(g.widths[i], columns(cell))
		}
	}
	widths := g.fitted()
	var b strings.Builder
	for _, row := range g.rows {
		g.line(&b, row, widths)
	}
	g.rows = g.rows[:0]
	_, err := io.WriteString(g.w, b.String())
	return err
}

// alignPoints puts blanks after the amounts that have fewer decimals than others of their column.
func (g *grid) alignPoints() {
	for i, align := range g.points {
		if !align {
			continue
		}
		if g.decimals == nil {
			g.decimals = make([]int, len(g.points))
		}
		for _, row := range g.rows {
			g.decimals[i] = max(g.decimals[i], decimals(row[i]))
		}
		for _, row := range g.rows {
			if row[i] != unknownCell {
				row[i] += strings.Repeat(" ", g.decimals[i]-decimals(row[i]))
			}
		}
	}
}

// decimals is how many characters a number has from its decimal point on.
func decimals(number string) int {
	_, fraction, found := strings.Cut(number, ".")
	if !found {
		return 0
	}
	return 1 + len(fraction)
}

// gap is the number of blanks between columns.
const gap = 2

// narrowest is how far a column gives way.
const narrowest = 8

// fitted are the widths at which a line fits: the widest that yield give way.
func (g *grid) fitted() []int {
	widths := append([]int(nil), g.widths...)
	if g.limit == 0 {
		return widths
	}
	excess := gap*(len(widths)-1) - g.limit
	for _, w := range widths {
		excess += w
	}
	for ; excess > 0; excess-- {
		widest := -1
		for i, w := range widths {
			if g.yields[i] && w > narrowest && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}

func (g *grid) line(b *strings.Builder, row []string, widths []int) {
	var line strings.Builder
	for i, cell := range row {
		cell = cut(cell, widths[i])
		pad := strings.Repeat(" ", widths[i]-columns(cell))
		if i > 0 {
			line.WriteString(strings.Repeat(" ", gap))
		}
		if g.right[i] {
			cell, pad = pad, cell
		}
		line.WriteString(cell + pad)
	}
	text := strings.TrimRight(line.String(), " ")
	if g.limit > 0 {
		text = cut(text, g.limit)
	}
	b.WriteString(text + "\n")
}

// cut shortens s to n columns of the terminal.
func cut(s string, n int) string {
	if columns(s) <= n {
		return s
	}
	used := 0
	for i, r := range s {
		if used += runeColumns(r); used > n-1 {
			return s[:i] + "…"
		}
	}
	return s
}

// columns is the width of s on a terminal.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// summary adds up what a table shows. The unknown is counted apart.
type summary struct {
	requests int64
	cost     sum[plugins.Nanodollars]
	tokens   sum[int64]
}

type sum[T plugins.Unit] struct {
	total   T
	unknown int64
}

func (s *summary) add(record gjson.Result) {
	s.requests++
	if cost := record.Get("cost"); cost.Type == gjson.Null {
		s.cost.unknown++
	} else {
		s.cost.total += nanodollars(cost.Num)
	}
	if tokens := record.Get("total_tokens"); tokens.Type == gjson.Null {
		s.tokens.unknown++
	} else {
		s.tokens.total += tokens.Int()
	}
}

// String is a line such as "2 requests, cost $0.000027 (1 unknown), tokens 120".
func (s *summary) String() string {
	requests := "requests"
	if s.requests == 1 {
		requests = "request"
	}
	return fmt.Sprintf("%s %s, cost %s, tokens %s", formatCount(s.requests), requests,
		s.cost.text(s.requests, formatCost), s.tokens.text(s.requests, formatCount))
}

func (s *sum[T]) text(requests int64, format func(T) string) string {
	switch s.unknown {
	case 0:
		return format(s.total)
	case requests:
		return "unknown"
	default:
		return fmt.Sprintf("%s (%s unknown)", format(s.total), formatCount(s.unknown))
	}
}
