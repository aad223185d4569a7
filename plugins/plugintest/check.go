package plugintest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/streams"
)

// Result is what a legal stream said.
type Result struct {
	// Response is the object of the terminal event.
	Response json.RawMessage
	// Status is that of the response: completed, incomplete or failed.
	Status string
	// Events is the number of events, [DONE] left out.
	Events int
	// Done is true if the stream ended in [DONE].
	Done bool
}

// Check reads a whole stream of POST /v1/responses by the grammar that clients
// rely on: created, [queued], in_progress, items, one terminal event, [DONE].
// The error names the first event that breaks it, by its number from 0, or what
// is missing at the end.
func Check(stream []byte) (*Result, error) {
	c := &checker{}
	if err := eachEvent(stream, c.event); err != nil {
		return nil, err
	}
	if c.phase != ended {
		return nil, fmt.Errorf("no terminal event after %d events", c.Events)
	}
	return &c.Result, nil
}

// eachEvent calls f with the events of a stream until f returns an error.
func eachEvent(stream []byte, f func(name string, data []byte) error) error {
	n := 0
	for e, err := range streams.ReadSSE(bytes.NewReader(stream)) {
		if err != nil {
			return err
		}
		if err := f(string(e.Name), bytes.Clone(e.Data)); err != nil {
			return fmt.Errorf("event %d: %w in %s", n, err, e.Data)
		}
		n++
	}
	return nil
}

type phase uint8

const (
	fresh phase = iota
	created
	running
	erred // an error came: only response.failed may follow
	ended
)

type checker struct {
	Result
	phase phase
	id    string
	items []*item
}

func (c *checker) event(name string, data []byte) error {
	if string(data) == "[DONE]" {
		if c.phase != ended || c.Done {
			return fmt.Errorf("[DONE] before the terminal event, or twice")
		}
		c.Done = true
		return nil
	}
	if !gjson.ValidBytes(data) {
		return fmt.Errorf("data is not JSON: %.80q", data)
	}
	e := gjson.ParseBytes(data)
	kind := e.Get("type").Str
	if name != "" && name != kind {
		return fmt.Errorf("the event is named %q but of type %q", name, kind)
	}
	if err := c.step(kind, e); err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	c.Events++
	return nil
}

func (c *checker) step(kind string, e gjson.Result) error {
	if c.phase == ended {
		return fmt.Errorf("comes after the terminal event")
	}
	if n := e.Get("sequence_number"); n.Type != gjson.Number || n.Int() != int64(c.Events) {
		return fmt.Errorf("sequence_number is %q, want %d", n.Raw, c.Events)
	}
	switch kind {
	case "response.created", "response.queued", "response.in_progress":
		return c.begin(kind, e.Get("response"))
	case "response.completed", "response.incomplete", "response.failed":
		return c.end(strings.TrimPrefix(kind, "response."), e.Get("response"))
	case "error":
		if c.phase == fresh || c.phase == erred {
			return fmt.Errorf("comes before response.created or a second time")
		}
		c.phase = erred
		if e.Get("error.message").Type != gjson.String && e.Get("message").Type != gjson.String {
			return fmt.Errorf("has no message")
		}
		return nil
	}
	if c.phase != running {
		return fmt.Errorf("comes before response.in_progress or after an error")
	}
	if kind == "response.output_item.added" {
		return c.open(e)
	}
	index := e.Get("output_index")
	if index.Type != gjson.Number || index.Int() < 0 || index.Int() >= int64(len(c.items)) {
		return fmt.Errorf("output_index %q was not announced", index.Raw)
	}
	i := c.items[index.Int()]
	if i.final != nil {
		return fmt.Errorf("item %d is closed", index.Int())
	}
	if kind == "response.output_item.done" {
		return i.close(e.Get("item"))
	}
	if id := e.Get("item_id"); id.Str != i.id {
		return fmt.Errorf("item_id is %q, want %q", id.Str, i.id)
	}
	return i.step(kind, e)
}

func (c *checker) begin(kind string, response gjson.Result) error {
	status := "in_progress"
	switch {
	case kind == "response.created" && c.phase == fresh:
		c.phase = created
		c.id = response.Get("id").Str
		if c.id == "" {
			return fmt.Errorf("the response has no id")
		}
		if response.Get("status").Str == "queued" {
			status = "queued"
		}
	case kind == "response.queued" && c.phase == created:
		status = "queued"
	case kind == "response.in_progress" && c.phase == created:
		c.phase = running
	default:
		return fmt.Errorf("comes out of order")
	}
	if got := response.Get("status").Str; got != status {
		return fmt.Errorf("the response's status is %q, want %q", got, status)
	}
	if n := len(response.Get("output").Array()); n > 0 {
		return fmt.Errorf("the response already has %d items", n)
	}
	return c.same(response)
}

func (c *checker) same(response gjson.Result) error {
	if id := response.Get("id").Str; id != c.id {
		return fmt.Errorf("response.id changes from %q to %q", c.id, id)
	}
	return nil
}

func (c *checker) open(e gjson.Result) error {
	if n := e.Get("output_index"); n.Type != gjson.Number || n.Int() != int64(len(c.items)) {
		return fmt.Errorf("output_index is %q, want %d", n.Raw, len(c.items))
	}
	i, err := newItem(e.Get("item"))
	if err != nil {
		return err
	}
	for _, other := range c.items {
		if other.id == i.id {
			return fmt.Errorf("the id %q is another item's", i.id)
		}
	}
	c.items = append(c.items, i)
	return nil
}

func (c *checker) end(status string, response gjson.Result) error {
	switch {
	case c.phase == fresh:
		return fmt.Errorf("comes before response.created")
	case c.phase == created && status != "failed":
		return fmt.Errorf("comes before response.in_progress")
	case c.phase == erred && status != "failed":
		return fmt.Errorf("follows an error")
	}
	if got := response.Get("status").Str; got != status {
		return fmt.Errorf("the response's status is %q", got)
	}
	if err := c.same(response); err != nil {
		return err
	}
	if reason := response.Get("incomplete_details.reason").Str; (reason != "") != (status == "incomplete") {
		return fmt.Errorf("incomplete_details.reason is %q", reason)
	}
	if response.Get("error").IsObject() != (status == "failed") {
		return fmt.Errorf("error is %s", response.Get("error").Raw)
	}
	if err := c.output(status, response.Get("output")); err != nil {
		return err
	}
	if err := usage(response.Get("usage")); err != nil {
		return err
	}
	c.phase = ended
	c.Status = status
	c.Response = json.RawMessage(response.Raw)
	return nil
}

// output compares the items of the response with those that were streamed. A
// response that failed may lack items, and have some that were not finished.
func (c *checker) output(status string, output gjson.Result) error {
	if !output.IsArray() {
		return fmt.Errorf("output is no array")
	}
	got := output.Array()
	if len(got) > len(c.items) || len(got) < len(c.items) && status != "failed" {
		return fmt.Errorf("output has %d items, and %d were streamed", len(got), len(c.items))
	}
	for n, i := range c.items {
		if i.final == nil && status != "failed" {
			return fmt.Errorf("item %d was not closed", n)
		}
		arguments := gjson.GetBytes(i.final, "arguments")
		cut := arguments.Exists() && !gjson.Valid(arguments.Str)
		if i.status() == "incomplete" && status != "failed" && (status != "incomplete" || n < len(c.items)-1 && !cut) {
			return fmt.Errorf("item %d is incomplete: only the last one of an incomplete response may be, and calls whose arguments are cut off", n)
		}
		if n >= len(got) {
			continue
		}
		if i.final != nil {
			if !equal(got[n].Raw, i.final) {
				return fmt.Errorf("output[%d] differs from the item that was streamed: %s, want %s", n, got[n].Raw, i.final)
			}
			continue
		}
		if err := i.checkUnchanged(got[n]); err != nil {
			return fmt.Errorf("output[%d]: %w", n, err)
		}
		if err := i.compareTexts(got[n]); err != nil {
			return fmt.Errorf("output[%d]: %w", n, err)
		}
	}
	return nil
}

func usage(u gjson.Result) error {
	if u.Type == gjson.Null {
		return nil
	}
	for _, key := range []string{
		"input_tokens", "input_tokens_details.cached_tokens",
		"output_tokens", "output_tokens_details.reasoning_tokens", "total_tokens",
	} {
		if v := u.Get(key); v.Type != gjson.Number || v.Int() < 0 {
			return fmt.Errorf("usage.%s is %q", key, v.Raw)
		}
	}
	input, output := u.Get("input_tokens").Int(), u.Get("output_tokens").Int()
	if total := u.Get("total_tokens").Int(); total != input+output {
		return fmt.Errorf("usage.total_tokens is %d, want %d", total, input+output)
	}
	d := u.Get("input_tokens_details")
	if cached := d.Get("cached_tokens").Int() + d.Get("cache_write_tokens").Int(); cached > input {
		return fmt.Errorf("usage has %d cached tokens of %d", cached, input)
	}
	if n := u.Get("output_tokens_details.reasoning_tokens").Int(); n > output {
		return fmt.Errorf("usage has %d reasoning tokens of %d", n, output)
	}
	return nil
}

// equal compares items by the meaning of their JSON. OpenAI encrypts the content of a reasoning item again for
// the terminal event.
func equal(a string, b []byte) bool {
	var x, y map[string]any
	if decode([]byte(a), &x) != nil || decode(b, &y) != nil {
		return false
	}
	if x["encrypted_content"] != nil && y["encrypted_content"] != nil {
		delete(x, "encrypted_content")
		delete(y, "encrypted_content")
	}
	return reflect.DeepEqual(x, y)
}

func decode(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(v)
}
