package sqlite

import (
	"database/sql/driver"
	"slices"

	"github.com/weirhq/weir/storage"
)

// The columns of a chunk.
const (
	userColumn = iota
	sessionColumn
	sessionNameColumn
	modelColumn
	providerColumn
	statusColumn
	latencyColumn
	costColumn
	inputColumn
	outputColumn
	respondedColumn // milliseconds after the request
	attemptColumn
	ttftColumn
	cacheReadColumn
	cacheWriteColumn
	reasoningColumn
	cacheSavingsColumn
	cacheLossColumn
	cacheMissColumn
	endStateColumn
	streamColumn
	pathColumn
	finishColumn
	errorTypeColumn
	requestModelColumn
	countryColumn
	promptColumn
	promptVersionColumn
	nodeColumn
	jobColumn
	referrerColumn
	cachedColumn
	passthroughColumn
	threatColumn
	rootColumn
	propertyNamesColumn
	columnCount
)

// cachedNames are the columns of requests that chunks have.
var cachedNames = [columnCount]string{
	"user", "session", "session_name", "model", "provider", "status", "latency", "cost", "input", "output", "responded_at", "attempt_of",
	"ttft", "cache_read", "cache_write", "reasoning", "cache_savings", "cache_loss", "cache_miss", "end_state", "stream", "path", "finish", "error_type",
	"request_model", "country", "prompt", "prompt_version", "node", "job", "referrer", "cache_reference", "passthrough", "threat", "root", "property_names",
}

// cachedColumns are the same with how to read them.
var cachedColumns = func() (cached [columnCount]*column) {
	for i, name := range cachedNames {
		cached[i] = &requestColumns[slices.IndexFunc(requestColumns, func(c column) bool { return c.name == name })]
	}
	return cached
}()

// cachedColumnOf is the column that has what a field compares, -1 if none has.
func cachedColumnOf(f *storage.Field) int {
	if f.Name == "cached" {
		return cachedColumn
	}
	if f.Column != nil && f.Column.Type == storage.IDColumn && f.Column.Names == "" { // chunks know but whether there is one
		return -1
	}
	return slices.Index(cachedNames[:], columnOf(f))
}

// keep appends what the database has in a column. Of an id of a request it keeps that
// there is one.
func (c *chunk) keep(column int, v driver.Value) {
	switch v := v.(type) {
	case int64:
		switch {
		case cachedColumns[column].required || cachedColumns[column].names != "":
			c.append(column, uint32(v))
		case column == respondedColumn:
			c.count(column, v-int64(createdAt(c.n[len(c.n)-1])))
		default:
			c.count(column, v)
		}
	case nil:
		c.append(column, 0)
	default:
		c.append(column, 1)
	}
}
