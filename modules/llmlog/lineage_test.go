package llmlog

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
)

// toolStream is a streamed answer of Messages that hands a task to a sub-agent.
const toolStream = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"usage":{"input_tokens":10,"cache_creation_input_tokens":%d,"cache_read_input_tokens":0,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"Task","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"prompt\":\"Find each \\\"caller\\\" "}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"of Open, and say where.\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":30}}

event: message_stop
data: {"type":"message_stop"}

`

func TestARecordSaysWhichCallItGoesOnFrom(t *testing.T) {
	const (
		marked = `{"type":"text","text":"%s","cache_control":{"type":"ephemeral"}}`
		turn   = `{"model":"claude-sonnet-4-5","stream":true,"max_tokens":9,"tools":[{"name":"%s"}],"messages":[%s]}`
		asked  = `{"role":"user","content":[` + marked + `]}`
	)
	called := `{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Task","input":{"prompt":"Find"}}]}`
	written := 15_000
	s := serve(t, options{config: object{"provider": "anthropic"}, handler: handlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, err := fmt.Fprintf(w, toolStream, written)
		return err
	})})
	ask := func(tool string, messages []string, header ...string) (id uuid.UUID) {
		resp, _ := s.do("POST", "/v1/messages", fmt.Sprintf(turn, tool, strings.Join(messages, ",")), header...)
		return uuid.MustParse(resp.Header.Get("Service-Id"))
	}
	last := func() entry {
		for !s.kept.ended() {
			runtime.Gosched()
		}
		s.kept.mu.Lock()
		defer s.kept.mu.Unlock()
		return s.kept.entries[len(s.kept.entries)-1]
	}
	omit := []string{"Service-Omit-Request", "true"}

	first := ask("Task", []string{fmt.Sprintf(asked, "Where is Open called?")})
	main := last()
	sub := ask("Read", []string{`{"role":"user","content":[{"type":"text","text":"Be brief, whatever you find."},` + fmt.Sprintf(marked, `Find each \u0022caller\u0022 of Open, and say where.`) + `]}`}, omit...)
	of := last()
	written = 20_000
	ask("Write", []string{`{"role":"user","content":"Where is Open called?"}`, called, fmt.Sprintf(asked, "Here.")}, omit...)
	next := last()

	if main.ParentID != uuid.Nil || main.RootID != uuid.Nil || main.Turn != plugins.Known(1) || main.CacheMissed.Valid {
		t.Errorf("the first call: %+v", main.Record)
	}
	if of.ID != sub || of.ParentID != first || of.RootID != first || of.Turn != plugins.Known(1) || of.CacheMissed.Valid {
		t.Errorf("the sub-agent's: parent %s, root %s, turn %v", of.ParentID, of.RootID, of.Turn)
	}
	if next.ParentID != first || next.RootID != first || next.Turn != plugins.Known(2) {
		t.Errorf("the next: parent %s, root %s, turn %v", next.ParentID, next.RootID, next.Turn)
	}
	if next.CacheMiss != "tools_changed" || next.CacheMissAt != "tools" || next.CacheMissed != plugins.Known(15_010) || next.CacheLoss.N != 15_010*(3750-300) {
		t.Errorf("the cache: %s at %s, %v tokens, %v", next.CacheMiss, next.CacheMissAt, next.CacheMissed, next.CacheLoss)
	}
	if len(next.Content.Request.Data) > 0 || strings.Contains(fmt.Sprintf("%+v", next.Record), "Here.") {
		t.Error("what was omitted is in the record")
	}
}
