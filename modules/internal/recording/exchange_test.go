package recording

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/modules/internal/lineage"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"

	_ "github.com/weirhq/weir/storage/sqlite"
)

// versions is a Recorder that remembers what it was given.
type versions struct {
	records         []storage.Record
	begun, recorded int
	lost, released  int
	err             error // of Append
	unknown         error // of Known
}

func (v *versions) Begin(r *storage.Record) { v.begun++; r.Number = uint64(v.begun) }
func (v *versions) Append(r *storage.Record, _ *storage.Kept) error {
	if r.Number > 0 {
		v.recorded++
		r.Number = 0
	}
	v.records = append(v.records, *r)
	return v.err
}

func (v *versions) Abandon(r *storage.Record) {
	if r.Number > 0 {
		v.lost++
		r.Number = 0
	}
}
func (v *versions) Claim(context.Context, storage.RecordKey) bool { return true }
func (v *versions) Release(storage.RecordKey)                     {}
func (v *versions) Known(_ context.Context, key storage.RecordKey) (bool, error) {
	return slices.ContainsFunc(v.records, func(r storage.Record) bool { return r.Key() == key }), v.unknown
}
func (v *versions) Response(_ context.Context, _, id string) (*storage.Record, error) {
	for _, r := range v.records {
		if r.ResponseID == id {
			return &r, nil
		}
	}
	return nil, storage.ErrNotFound
}

// begin begins an exchange whose versions are told.
func begin(t *testing.T) (*Exchange, *versions) {
	t.Helper()
	app, _ := provision(t)
	kept := new(versions)
	x := new(Exchange)
	x.Record.Provider, x.Record.RequestModel = "openai", "gpt-4o"
	x.Begin(t.Context(), &Site{App: app, Store: "default", Logger: zap.NewNop(), Open: func(context.CancelFunc) (Recorder, func(), error) {
		return kept, func() { kept.released++ }, nil
	}}, new(control.Controls), func() {})
	return x, kept
}

func provision(t *testing.T) (*llmapp.App, *prometheus.Registry) {
	t.Helper()
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	t.Cleanup(cancel)
	app := &llmapp.App{Stores: map[string]*stores.Config{"default": {
		StorageRaw: fmt.Appendf(nil, `{"backend":"sqlite","path":%q}`, t.TempDir()+"/weir.db"),
	}}}
	if err := app.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	return app, ctx.GetMetricsRegistry()
}

// answer is what an observer has learned.
type answer plugins.ResponseInfo

func (a *answer) Info() *plugins.ResponseInfo { return (*plugins.ResponseInfo)(a) }

func TestAVersionIsWrittenOnlyWhenSomethingChanged(t *testing.T) {
	x, kept := begin(t)
	told := new(answer)
	x.Answer = told
	x.Record.Status = plugins.Known(200)

	told.Phase = plugins.Finished
	x.Commit(storage.Interrupted)
	x.Commit(storage.Interrupted)
	told.Usage = plugins.Usage{Input: plugins.Known(1000), Output: plugins.Known(10)}
	x.Commit(storage.Complete)

	x.clock.started = x.clock.started.Add(-time.Second) // what is reported is what is stored, however late
	x.End(storage.Complete)
	x.Close()

	if len(kept.records) != 2 {
		t.Fatalf("%d versions, want 2", len(kept.records))
	}
	if first := kept.records[0]; first.EndState != storage.Interrupted || first.Cost.Valid {
		t.Errorf("before the end: %s, cost %v", first.EndState, first.Cost)
	}
	if last := kept.records[1]; last.EndState != storage.Complete || !last.Cost.Valid || last.RespondedAt == 0 {
		t.Errorf("at the end: %s, cost %v, at %d", last.EndState, last.Cost, last.RespondedAt)
	}
	if last := kept.records[len(kept.records)-1]; x.Record.Latency != last.Latency {
		t.Errorf("a latency of %v is reported, and one of %v stored", x.Record.Latency, last.Latency)
	}
	if kept.recorded != 1 || kept.lost != 0 || kept.released != 1 {
		t.Errorf("%+v", kept)
	}
}

// Each version of a record says which node served the call, also those of attempts and of
// parts.
func TestTheNodeIsRecorded(t *testing.T) {
	node, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	x, kept := begin(t)
	attempt := x.Attempt(1)
	part := x.Part(time.Now())
	part.End(storage.Complete)
	part.Close()
	x.End(storage.Complete)
	x.Close()
	if len(kept.records) != 2 || attempt.Record.GatewayNode != node {
		t.Fatalf("%d records, and an attempt at %q", len(kept.records), attempt.Record.GatewayNode)
	}
	for _, r := range kept.records {
		if r.GatewayNode != node {
			t.Errorf("a record of %q, want %q", r.GatewayNode, node)
		}
	}
}

func TestALostRecordIsNotWrittenAgain(t *testing.T) {
	x, kept := begin(t)
	kept.err = errors.New("disk on fire")
	x.Commit(storage.Interrupted)
	kept.err = nil
	x.End(storage.Complete)
	x.Close()
	if len(kept.records) != 1 {
		t.Errorf("%d versions, want the one that failed", len(kept.records))
	}
}

func TestAnExchangeWithoutAVersionIsLost(t *testing.T) {
	x, kept := begin(t)
	x.Close()
	if kept.begun != 1 || kept.lost != 1 || kept.released != 1 {
		t.Errorf("%+v", kept)
	}
}

func TestTheAttemptThatAnswersIsTheCallsRecord(t *testing.T) {
	call, kept := begin(t)
	first := call.Attempt(1)
	first.Record.Status = plugins.Known(503)
	first.Stop()
	first.Supersede(storage.Complete)

	second := call.Attempt(2)
	second.Record.Status = plugins.Known(200)
	second.End(storage.Complete)
	call.Close()

	if len(kept.records) != 2 {
		t.Fatalf("%d records, want 2", len(kept.records))
	}
	failed, answered := kept.records[0], kept.records[1]
	if failed.AttemptOf != answered.ID || failed.ID == answered.ID || failed.Attempt != 1 {
		t.Errorf("the attempt that failed is %s, of %s", failed.ID, failed.AttemptOf)
	}
	if answered.ID != call.Record.ID || answered.AttemptOf != uuid.Nil || answered.Attempt != 2 {
		t.Errorf("the attempt that answered is %s, the call %s", answered.ID, call.Record.ID)
	}
	if call.Record.Status != plugins.Known(200) {
		t.Errorf("the call's placeholders say %v", call.Record.Status)
	}
	if kept.begun != 2 || kept.recorded != 2 || kept.lost != 0 || kept.released != 1 {
		t.Errorf("%+v", kept)
	}
}

func TestAnAttemptIsInTheTreeOfItsCall(t *testing.T) {
	call, kept := begin(t)
	call.site.Calls, call.Record.Dialect = new(lineage.Index), plugins.Chat
	call.Join(&observe.Outline{Messages: []observe.MessageHash{{Hash: 1}}}, uuid.Nil)
	call.Attempt(1).Supersede(storage.Complete)
	call.Attempt(2).End(storage.Complete)
	call.Close()
	if attempt, answered := kept.records[0], kept.records[1]; attempt.RootID != answered.ID || answered.RootID != uuid.Nil {
		t.Errorf("the attempt is in the tree %s, the call %s in %s", attempt.RootID, answered.ID, answered.RootID)
	}
}

func TestTheModelThatWasAskedForIsPricedWhereTheAnswersHasNoPrice(t *testing.T) {
	for name, c := range map[string]struct {
		override, response, target string
		passthrough                bool
		model                      string
		priced                     bool
	}{
		"the answer's":                   {"", "gpt-4o-2024-08-06", "gpt-4o", false, "gpt-4o-2024-08-06", true},
		"the target's":                   {"", "", "gpt-4o", false, "gpt-4o", true},
		"the answer's has no price":      {"", "nobody-knows", "gpt-4o", false, "nobody-knows", true},
		"the override has no price":      {"mine", "gpt-4o", "gpt-4o", false, "mine", true},
		"the request's":                  {"", "nobody-knows", "", false, "nobody-knows", true},
		"the override when credits pay":  {"mine", "gpt-4o", "gpt-4o", true, "mine", true},
		"an unknown one when they do so": {"gpt-4o", "nobody-knows", "", true, "gpt-4o", false},
	} {
		t.Run(name, func(t *testing.T) {
			x, _ := begin(t)
			defer x.Close()
			x.Record.ModelOverride, x.Record.PassthroughBilling, x.TargetModel = c.override, c.passthrough, c.target
			x.Answer = &answer{Model: c.response, Usage: plugins.Usage{Input: plugins.Known(1000), Output: plugins.Known(10)}}
			x.End(storage.Complete)
			if x.Record.Model != c.model || x.Record.Cost.Valid != c.priced {
				t.Errorf("model %q, cost %v", x.Record.Model, x.Record.Cost)
			}
		})
	}
}

func TestBedrockIsPricedByTheProfileThatWasAskedFor(t *testing.T) {
	for asked, cost := range map[string]string{
		"global.anthropic.claude-sonnet-4-5-20250929-v1:0":            "$0.300000",
		"us.anthropic.claude-sonnet-4-5-20250929-v1:0":                "$0.330000",
		"anthropic.claude-sonnet-4-5-20250929-v1:0":                   "$0.330000",
		"arn:aws:bedrock:us-east-1:1:application-inference-profile/x": "$0.330000", // of which nothing but the answer tells
	} {
		t.Run(asked, func(t *testing.T) {
			x, _ := begin(t)
			defer x.Close()
			x.Record.Provider, x.Record.RequestModel = "bedrock", asked
			x.Answer = &answer{Model: "claude-sonnet-4-5-20250929", Usage: plugins.Usage{Input: plugins.Known(100_000), Output: plugins.Known(0)}}
			x.End(storage.Complete)
			if got := x.Record.Cost; !got.Valid || fmt.Sprint(got.N) != cost {
				t.Errorf("cost %v, want %s", got, cost)
			}
		})
	}
}

func TestModerationsOfOpenAIAreFree(t *testing.T) {
	for provider, model := range map[string]string{"openai": "omni-moderation-latest", "mistral": "mistral-moderation-latest"} {
		x, _ := begin(t)
		x.Record.Provider, x.Record.RequestModel, x.Record.Dialect = provider, model, plugins.Moderations
		x.Answer, x.Record.Status = new(answer), plugins.Known(200)
		x.End(storage.Complete)
		x.Close()
		if got := x.Record.Cost; got.Valid != (provider == "openai") || got.N != 0 {
			t.Errorf("%s: cost %v", provider, got)
		}
	}
}

// What is free costs nothing even if nobody knows how its answer ended; what is not free may have
// cost something.
func TestFreeCallsAreFreeHoweverTheyEnd(t *testing.T) {
	for _, c := range []struct {
		dialect plugins.Dialect
		model   string
		free    bool
	}{{plugins.CountTokens, "gpt-4o", true}, {plugins.InputTokens, "gpt-4o", true}, {plugins.Moderations, "omni-moderation-latest", true}, {plugins.Chat, "gpt-4o", false}} {
		for _, s := range []struct {
			name   string
			status int64
			Settling
		}{
			{"timed out", 504, Settling{End: storage.Failed, Left: true}},
			{"left before its header", storage.StatusClientLeft, Settling{End: storage.ClientAborted, Left: true}},
			{"left amid", 200, Settling{End: storage.ClientAborted, Served: true}},
			{"broken off", 200, Settling{End: storage.UpstreamAborted, Served: true}},
		} {
			x, _ := begin(t)
			x.Record.RequestModel, x.Record.Dialect, x.Record.Status = c.model, c.dialect, plugins.Known(s.status)
			x.Answer = new(answer)
			x.Commit(s.End)
			x.Settle(s.Settling)
			x.End(s.End)
			x.Close()
			if got := x.Record.Cost; got.Valid != c.free || got.N != 0 {
				t.Errorf("%v, %s: cost %v", c.dialect, s.name, got)
			}
		}
	}
}
