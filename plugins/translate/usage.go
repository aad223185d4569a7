package translate

import (
	"strconv"

	"github.com/weirhq/weir/plugins"
)

// appendUsage appends the usage of a response: null if there was no
// report, and otherwise numbers whose parts do not exceed their whole, as
// clients rely on, whatever the provider said.
func appendUsage(b []byte, u plugins.Usage) []byte {
	if !u.Input.Valid && !u.Output.Valid {
		return append(b, "null"...)
	}
	input, output := within(u.Input, maxTokens), within(u.Output, maxTokens)
	read := within(u.CacheRead, input)
	write := within(u.CacheWrite, input-read)
	reasoning := within(u.Reasoning, output)
	b = append(b, `{"input_tokens":`...)
	b = strconv.AppendInt(b, input, 10)
	b = append(b, `,"input_tokens_details":{"cached_tokens":`...)
	b = strconv.AppendInt(b, read, 10)
	b = strconv.AppendInt(plugins.AppendKey(b, "cache_write_tokens"), write, 10)
	b = append(b, `},"output_tokens":`...)
	b = strconv.AppendInt(b, output, 10)
	b = append(b, `,"output_tokens_details":{"reasoning_tokens":`...)
	b = strconv.AppendInt(b, reasoning, 10)
	b = append(b, `},"total_tokens":`...)
	b = strconv.AppendInt(b, input+output, 10)
	return append(b, '}')
}

// maxTokens is the largest count in a response: the sum of two is exact in
// JavaScript.
const maxTokens = (1<<53 - 1) / 2

// within is the count, 0 if unknown, between 0 and limit.
func within(c plugins.Count, limit int64) int64 { return min(max(c.N, 0), limit) }
