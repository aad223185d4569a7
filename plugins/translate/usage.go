package translate

import (
	"strconv"

	"github.com/weirhq/weir/plugins"
)

// Tokens are the counts of a response's usage: parts do not exceed their whole, as
// clients rely on, whatever the provider said, and what is unknown is 0.
type Tokens struct{ Input, CacheRead, CacheWrite, CacheWrite1h, Output, Reasoning int64 }

// Tokens returns the usage so far. It is not known where there was no report.
func (a *Assembler) Tokens() (t Tokens, known bool) {
	u := a.seen.Usage
	return tokensOf(u), u.Input.Valid || u.Output.Valid
}

func tokensOf(u plugins.Usage) (t Tokens) {
	t.Input, t.Output = within(u.Input, maxTokens), within(u.Output, maxTokens)
	t.CacheRead = within(u.CacheRead, t.Input)
	t.CacheWrite = within(u.CacheWrite, t.Input-t.CacheRead)
	t.CacheWrite1h = within(u.CacheWrite1h, t.CacheWrite)
	t.Reasoning = within(u.Reasoning, t.Output)
	return t
}

// AppendUsage appends the usage so far as the Responses API has it: null if there was no
// report.
func (a *Assembler) AppendUsage(b []byte) []byte {
	t, known := a.Tokens()
	if !known {
		return append(b, "null"...)
	}
	b = append(b, `{"input_tokens":`...)
	b = strconv.AppendInt(b, t.Input, 10)
	b = append(b, `,"input_tokens_details":{"cached_tokens":`...)
	b = strconv.AppendInt(b, t.CacheRead, 10)
	b = strconv.AppendInt(plugins.AppendKey(b, "cache_write_tokens"), t.CacheWrite, 10)
	b = append(b, `},"output_tokens":`...)
	b = strconv.AppendInt(b, t.Output, 10)
	b = append(b, `,"output_tokens_details":{"reasoning_tokens":`...)
	b = strconv.AppendInt(b, t.Reasoning, 10)
	b = append(b, `},"total_tokens":`...)
	b = strconv.AppendInt(b, t.Input+t.Output, 10)
	return append(b, '}')
}

// maxTokens is the largest count in a response: the sum of two is exact in
// JavaScript.
const maxTokens = (1<<53 - 1) / 2

// within is the count, 0 if unknown, between 0 and limit.
func within(c plugins.Count, limit int64) int64 { return min(max(c.N, 0), limit) }
