package llmcommand

import (
	"fmt"

	"github.com/tidwall/gjson"
	"github.com/weirhq/weir/plugins"
)

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
		s.cost.text(s.requests, plugins.Nanodollars.String), s.tokens.text(s.requests, formatCount))
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
