package llmgateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/testkit/sharedtest"
	"github.com/weirhq/weir/modules/llmgateway/history"
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/storage/shared"
)

// cutOff are the runs of a node that may be cut off from the others.
type cutOff struct {
	shared.Runs
	off atomic.Bool
}

var errCutOff = errors.New("cut off")

func (c *cutOff) Publish(ctx context.Context, run shared.Key, news shared.RunNews) (shared.RunReply, error) {
	if c.off.Load() {
		return shared.RunReply{}, errCutOff
	}
	return c.Runs.Publish(ctx, run, news)
}

func (c *cutOff) Read(ctx context.Context, run shared.Key, from int) (*shared.Run, error) {
	if c.off.Load() {
		return nil, errCutOff
	}
	return c.Runs.Read(ctx, run, from)
}

// serveTwo starts two nodes, of which one has a provider that answers like that. Each has
// records of its own.
func serveTwo(t *testing.T, answer upstream) (a, b *site, all *sharedtest.LocalRuns, nodeA, nodeB *cutOff) {
	all = &sharedtest.LocalRuns{Lease: time.Minute}
	nodeA, nodeB = &cutOff{Runs: all}, &cutOff{Runs: all}
	a, b = serve(t, map[string][]upstream{"one": {answer}}), serve(t, map[string][]upstream{"one": {status(500)}})
	a.handler.responses.Nodes = func() shared.Runs { return nodeA }
	b.handler.responses.Nodes = func() shared.Runs { return nodeB }
	return a, b, all, nodeA, nodeB
}

// readsRecordsOf lets a node read the records of another one, as from a common store.
func (s *site) readsRecordsOf(other *site) {
	s.handler.responses.Journal = func() (history.Journal, error) { return other.kept, nil }
}

// until polls a response of a node until it has one of the statuses.
func (s *site) until(id string, statuses ...string) string {
	s.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		code, body := s.get("/v1/responses/" + id)
		for _, status := range statuses {
			if code == http.StatusOK && gjson.Get(body, "status").Str == status {
				return body
			}
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%d %s", code, body)
		}
	}
}

func TestAnyNodeAnswersForAResponseInTheBackground(t *testing.T) {
	answer, begun, proceed := held(says("model m-1", "text hel"), says("text lo", "usage 3 5", "stop"))
	a, b, _, _, _ := serveTwo(t, answer)
	id := a.inBackground(`{"model":"one/m","input":"hi"}`, "Service-User-Id", "ann")
	if status, got := b.get("/v1/responses/" + id); status != http.StatusOK || gjson.Get(got, "id").Str != id {
		t.Errorf("at once: %d %s", status, got)
	}
	<-begun
	b.until(id, "in_progress")
	for _, header := range [][]string{{"Authorization", "Bearer acme"}, {"Service-User-Id", "bob"}} {
		for _, path := range []string{"", "?stream=true"} {
			if status, got := b.get("/v1/responses/"+id+path, header...); status != http.StatusNotFound {
				t.Errorf("%s gets it: %d %s", header, status, got)
			}
		}
		if resp, got := b.send("POST", "/v1/responses/"+id+"/cancel", nil, header...); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s cancels it: %d %s", header, resp.StatusCode, got)
		}
	}
	if resp, got := b.send("DELETE", "/v1/responses/"+id, nil); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("deleting: %d %s", resp.StatusCode, got)
	}
	streamed := make(chan string)
	go func() {
		_, stream := b.get("/v1/responses/"+id+"?stream=true", "Service-User-Id", "ann")
		streamed <- stream
	}()
	close(proceed)
	stream := <-streamed
	want := a.ended(id)
	if _, whole := a.get("/v1/responses/" + id + "?stream=true"); stream != whole {
		t.Errorf("the other node streams\n%s\nwant\n%s", stream, whole)
	}
	last := lastEventData(stream, "response.completed")
	_, rest := b.get(fmt.Sprintf("/v1/responses/%s?stream=true&starting_after=%d", id, gjson.Get(last, "sequence_number").Int()-1))
	if strings.Count(rest, "data: {") != 1 || lastEventData(rest, "response.completed") != last {
		t.Error("resumed:", rest)
	}
	if got := b.until(id, "completed"); gjson.Get(got, "output").Raw != gjson.Get(want, "output").Raw {
		t.Errorf("before the store has the record: %s, want %s", got, want)
	}
	b.readsRecordsOf(a)
	if got := b.until(id, "completed"); got != want {
		t.Errorf("from the record: %s, want %s", got, want)
	}
	if resp, got := b.send("DELETE", "/v1/responses/"+id, nil); resp.StatusCode != http.StatusOK {
		t.Errorf("deleting: %d %s", resp.StatusCode, got)
	}
	for _, node := range []*site{a, b} {
		for _, path := range []string{"", "?stream=true"} {
			if status, got := node.get("/v1/responses/" + id + path); status != http.StatusNotFound {
				t.Errorf("deleted: %d %s", status, got)
			}
		}
	}
	if len(a.kept.all()) != 1 || len(b.kept.all()) != 0 {
		t.Errorf("%d and %d records", len(a.kept.all()), len(b.kept.all()))
	}
}

func TestAnyNodeCancelsAResponseInTheBackground(t *testing.T) {
	answer, begun, _ := held(says("model m-1", "text hel"), nil)
	a, b, _, _, _ := serveTwo(t, answer)
	id := a.inBackground(`{"model":"one/m","input":"hi"}`)
	<-begun
	for _, node := range []*site{b, b, a} {
		resp, got := node.send("POST", "/v1/responses/"+id+"/cancel", nil)
		if resp.StatusCode != http.StatusOK || gjson.Get(got, "status").Str != "cancelled" || gjson.Get(got, "error").Type != gjson.Null {
			t.Errorf("%d %s", resp.StatusCode, got)
		}
	}
	if records := a.kept.all(); len(records) != 1 || records[0].Properties[history.Cancelled] != "true" {
		t.Errorf("records %+v", records)
	}
}

// A node that is silent for longer than its lease is dead, unless the store has a record:
// this says how the response ended.
func TestAResponseInTheBackgroundFailsWithItsNode(t *testing.T) {
	answer, begun, proceed := held(says("model m-1", "text hel"), says("text lo", "usage 3 5", "stop"))
	a, b, all, nodeA, _ := serveTwo(t, answer)
	id := a.inBackground(`{"model":"one/m","input":"hi"}`)
	<-begun
	b.until(id, "in_progress")
	nodeA.off.Store(true)
	all.Age(all.Lease / 2)
	if _, got := b.get("/v1/responses/" + id); gjson.Get(got, "status").Str != "in_progress" {
		t.Errorf("within the lease: %s", got)
	}
	all.Age(all.Lease)
	for range 2 {
		if _, got := b.get("/v1/responses/" + id); gjson.Get(got, "status").Str != "failed" || gjson.Get(got, "error.code").Str != "server_error" {
			t.Error(got)
		}
		if resp, got := b.send("POST", "/v1/responses/"+id+"/cancel", nil); resp.StatusCode != http.StatusOK || gjson.Get(got, "status").Str != "failed" {
			t.Errorf("cancelling: %d %s", resp.StatusCode, got)
		}
	}
	_, stream := b.get("/v1/responses/" + id + "?stream=true")
	if _, err := plugintest.Check([]byte(stream)); err != nil || lastEventData(stream, "response.failed") == "" {
		t.Errorf("%v\n%s", err, stream)
	}
	close(proceed)
	a.ended(id)
	b.readsRecordsOf(a)
	if _, got := b.get("/v1/responses/" + id); gjson.Get(got, "status").Str != "completed" {
		t.Errorf("the node was only cut off: %s", got)
	}
	nodeA.off.Store(false) // the site waits for what is published
}

// What nodes share may be away: a node goes on with its responses, and others know them
// when it is back.
func TestAResponseInTheBackgroundGoesOnAlone(t *testing.T) {
	answer, begun, proceed := held(says("model m-1", "text hel"), says("text lo", "usage 3 5", "stop"))
	a, b, _, nodeA, nodeB := serveTwo(t, answer)
	nodeA.off.Store(true)
	nodeB.off.Store(true)
	id := a.inBackground(`{"model":"one/m","input":"hi"}`)
	<-begun
	a.until(id, "in_progress")
	resp, got := b.send("GET", "/v1/responses/"+id, nil)
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || gjson.Get(got, "error.code").Str != "nodes_unavailable" {
		t.Errorf("%d %s", resp.StatusCode, got)
	}
	if status, got := b.get("/v1/responses/resp_of_a_provider"); status != http.StatusNotFound {
		t.Errorf("another id: %d %s", status, got)
	}
	close(proceed)
	a.ended(id)
	b.readsRecordsOf(a)
	if status, got := b.get("/v1/responses/" + id); status != http.StatusOK || gjson.Get(got, "status").Str != "completed" {
		t.Errorf("from the record: %d %s", status, got)
	}
	nodeA.off.Store(false)
	nodeB.off.Store(false)
	for code := 0; code != http.StatusOK; {
		code, got = b.get("/v1/responses/" + id + "?stream=true")
	}
	if _, err := plugintest.Check([]byte(got)); err != nil {
		t.Errorf("%v\n%s", err, got)
	}
}

// A client that has begun a stream at another node may leave it.
func TestAStreamOfAnotherNodeIsLeft(t *testing.T) {
	answer, begun, proceed := held(says("model m-1", "text hel"), says("stop"))
	a, b, _, _, _ := serveTwo(t, answer)
	id := a.inBackground(`{"model":"one/m","input":"hi"}`)
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", b.URL+"/v1/responses/"+id+"?stream=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer k")
	resp, err := b.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	cancel()
	resp.Body.Close()
	close(proceed)
	a.ended(id)
}
