package storage_test

import (
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // thousands of queries in a small heap
	m.Run()
}

const threeLeaves = `{"left":{"request_response_rmt":{"model":{"contains":"GPT"}}},"operator":"and","right":
	{"left":{"request_response_rmt":{"cost":{"gte":0.001}}},"operator":"or","right":{"request_response_rmt":{"properties":{"env":{"not-equals":"prod"}}}}}}`

// call is a record of a call that has everything; bare is one that lacks all
// that may be lacking.
var (
	created = storage.Timestamp(1795183445678) // 2026-11-20T14:04:05.678Z
	call    = &storage.Record{
		ID: uuid.MustParse("0190b1c0-0000-4000-8000-0000000000Aa"), Org: "acme", AuthHash: "beef",
		CreatedAt: created, RespondedAt: created + 1500,
		Latency: plugins.KnownDuration(1500 * time.Millisecond), TimeToFirstToken: plugins.KnownDuration(200 * time.Millisecond), Status: plugins.Known(200),
		Provider: "openai", Dialect: plugins.Chat, Path: "/v1/chat/completions", TargetURL: "https://api.openai.com/v1/chat/completions",
		Model: "forced", RequestModel: "asked", ResponseModel: "answered", ModelOverride: "forced",
		Usage: plugins.Usage{Input: plugins.Known(10), Output: plugins.Known(5), CacheRead: plugins.Known(4), CacheWrite: plugins.Known(0)},
		Cost:  plugins.KnownCost(300_000_000), PassthroughBilling: true,
		EndState: storage.UpstreamAborted, Finish: "length", ErrorType: "overloaded_error", Stream: true, SessionID: "s1",
		UserID: "u1", NodeID: "n1", JobID: "j1", PromptID: "p1", PromptVersion: "v1", CountryCode: "DE", Referrer: "gateway", ExperimentID: "e1",
		Threat: true, CacheEnabled: true, CacheReferenceID: uuid.MustParse("0190b1c0-0000-4000-8000-0000000000bb"),
		Properties: map[string]string{"env": "Prod", "empty": ""}, Assets: []string{"aa11", "bb22"},
		Scores: map[string]float64{"quality": 0.5, "b<": 2}, Feedback: &storage.Feedback{ID: 7, Rating: true, CreatedAt: created + 60_000},
		Content: storage.ContentRef{Segment: 1},
	}
	bare  = &storage.Record{ID: uuid.MustParse("0190b1c0-0000-4000-8000-0000000000cc"), Org: "acme", CreatedAt: created}
	texts = &storage.Content{
		Request:  storage.Body{Type: "application/json", Data: []byte(`{"messages":[{"role":"user","content":"Say \u00e9t\u00e9 \"now\""}]}`)},
		Response: storage.Body{Type: "application/json", Data: []byte(`{"choices":[{"message":{"role":"assistant","content":"Voil\u00e0"}}]}`)},
		Inputs:   map[string]string{"topic": "Seasons"},
	}
)

func TestMatch(t *testing.T) {
	for _, test := range []struct {
		filter     string
		call, bare bool
	}{
		{`"all"`, true, true},
		{`{}`, true, true},

		// Text: what is lacking is empty.
		{`{"request_response_rmt":{"model":{"equals":"forced"}}}`, true, false},
		{`{"request_response_rmt":{"model":{"equals":""}}}`, false, true},
		{`{"request_response_rmt":{"user_id":{"not-equals":"u1"}}}`, false, true},
		{`{"request_response_rmt":{"user_id":{"not-contains":"U"}}}`, false, true},
		{`{"request_response_rmt":{"user_id":{"like":"%"}}}`, true, true},
		{`{"request_response_rmt":{"country_code":{"ilike":"d_"}}}`, true, false},
		{`{"request_response_rmt":{"provider":{"contains":"OPEN"}}}`, true, false},
		{`{"request_response_rmt":{"organization_id":{"equals":"acme"}}}`, true, true},
		{`{"request_response_rmt":{"node_id":{"equals":"n1"}}}`, true, false},
		{`{"request_response_rmt":{"job_id":{"equals":"j1"}}}`, true, false},
		{`{"request_response_rmt":{"prompt_id":{"equals":"p1"}}}`, true, false},
		{`{"request_response_rmt":{"prompt_version":{"equals":"v1"}}}`, true, false},
		{`{"request_response_rmt":{"request_referrer":{"equals":"gateway"}}}`, true, false},
		{`{"request_response_rmt":{"target_url":{"like":"https://%.com/%"}}}`, true, false},
		{`{"request_response_rmt":{"request_id":{"equals":"0190b1c0-0000-4000-8000-0000000000aa"}}}`, true, false},
		{`{"request_response_rmt":{"cache_reference_id":{"equals":"0190b1c0-0000-4000-8000-0000000000bb"}}}`, true, false},
		{`{"request_response_rmt":{"cache_reference_id":{"equals":""}}}`, false, true},
		{`{"request_response_rmt":{"scores_column":{"equals":"{\"b<\":2,\"quality\":0.5,\"service-score-feedback\":1}"}}}`, true, false},
		{`{"request_response_rmt":{"scores_column":{"equals":"{}"}}}`, false, true},

		// Assets: any of them, or none.
		{`{"request_response_rmt":{"assets":{"equals":"bb22"}}}`, true, false},
		{`{"request_response_rmt":{"assets":{"not-equals":"bb22"}}}`, false, true},
		{`{"request_response_rmt":{"assets":{"not-equals":"cc33"}}}`, true, true},
		{`{"request_response_rmt":{"assets":{"contains":""}}}`, true, false},
		{`{"request_response_rmt":{"assets":{"not-contains":""}}}`, false, true},

		// Numbers: what is lacking differs, and nothing more.
		{`{"request_response_rmt":{"latency":{"equals":1500}}}`, true, false},
		{`{"request_response_rmt":{"latency":{"not-equals":1500}}}`, false, true},
		{`{"request_response_rmt":{"latency":{"not-equals":0}}}`, true, true},
		{`{"request_response_rmt":{"latency":{"gte":0}}}`, true, false},
		{`{"request_response_rmt":{"cost":{"equals":0.3}}}`, true, false},
		{`{"request_response_rmt":{"cost":{"lt":0.3}}}`, false, false},
		{`{"request_response_rmt":{"cost":{"lte":1}}}`, true, false},
		{`{"request_response_rmt":{"time_to_first_token":{"gt":199.5}}}`, true, false},
		{`{"request_response_rmt":{"status":{"equals":200}}}`, true, false},
		{`{"request_response_rmt":{"prompt_tokens":{"equals":10}}}`, true, false},
		{`{"request_response_rmt":{"completion_tokens":{"equals":5}}}`, true, false},
		{`{"request_response_rmt":{"prompt_cache_read_tokens":{"equals":4}}}`, true, false},
		{`{"request_response_rmt":{"prompt_cache_write_tokens":{"equals":0}}}`, true, false},
		{`{"request_response_rmt":{"total_tokens":{"equals":15}}}`, true, false},

		{`{"request_response_rmt":{"cost":{"is-null":true}}}`, false, true},
		{`{"request_response_rmt":{"cost":{"is-null":false}}}`, true, false},
		{`{"request_response_rmt":{"scores":{"quality":{"is-null":true}}}}`, false, true},
		{`{"request_response_rmt":{"scores":{"nothing":{"is-null":false}}}}`, false, false},
		{`{"feedback":{"id":{"is-null":true}}}`, false, true},

		// How calls ended.
		{`{"request_response_rmt":{"end_state":{"equals":"upstream_aborted"}}}`, true, false},
		{`{"request_response_rmt":{"end_state":{"not-equals":"upstream_aborted"}}}`, false, true},
		{`{"request_response_rmt":{"end_state":{"like":"%abort%"}}}`, true, false},
		{`{"request_response_rmt":{"end_state":{"equals":""}}}`, false, false},
		{`{"request_response_rmt":{"finish_reason":{"equals":"length"}}}`, true, false},
		{`{"request_response_rmt":{"finish_reason":{"equals":""}}}`, false, true},
		{`{"request_response_rmt":{"error_type":{"contains":"OVERLOADED"}}}`, true, false},
		{`{"request_response_rmt":{"request_model":{"equals":"asked"}}}`, true, false},
		{`{"request_response_rmt":{"request_path":{"equals":"/v1/chat/completions"}}}`, true, false},
		{`{"request_response_rmt":{"session_id":{"equals":"s1"}}}`, true, false},
		{`{"request_response_rmt":{"stream":{"equals":true}}}`, true, false},
		{`{"request_response_rmt":{"stream":{"equals":false}}}`, false, true},

		// Timestamps, at milliseconds.
		{`{"request_response_rmt":{"request_created_at":{"equals":"2026-11-20T14:04:05.6789Z"}}}`, true, true},
		{`{"request_response_rmt":{"request_created_at":{"gte":"2026-11-20T15:04:05.678+01:00"}}}`, true, true},
		{`{"request_response_rmt":{"request_created_at":{"gt":"2026-11-20T14:04:05.678Z"}}}`, false, false},
		{`{"request_response_rmt":{"request_created_at":{"lte":"2026-11-20T14:04:05.678Z"}}}`, true, true},
		{`{"request_response_rmt":{"request_created_at":{"lt":"2026-11-20T14:04:05.678Z"}}}`, false, false},
		{`{"request_response_rmt":{"response_created_at":{"gte":"1970-01-01"}}}`, true, false},
		{`{"request_response_rmt":{"response_created_at":{"lt":"9999-01-01"}}}`, true, false},

		// Booleans.
		{`{"request_response_rmt":{"threat":{"equals":false}}}`, false, true},
		{`{"request_response_rmt":{"cache_enabled":{"equals":true}}}`, true, false},
		{`{"request_response_rmt":{"cached":{"equals":true}}}`, true, false},
		{`{"request_response_rmt":{"cached":{"equals":false}}}`, false, true},
		{`{"request_response_rmt":{"is_passthrough_billing":{"equals":true}}}`, true, false},
		{`{"request_response_rmt":{"service-score-feedback":{"equals":true}}}`, true, false},
		{`{"request_response_rmt":{"service-score-feedback":{"equals":false}}}`, false, false},

		// Bodies, with their escapes decoded.
		{`{"request_response_rmt":{"request_body":{"contains":"ÉTÉ \"NOW"}}}`, true, false},
		{`{"request_response_rmt":{"request_body":{"contains":""}}}`, true, true},
		{`{"request_response_rmt":{"response_body":{"contains":"voilà"}}}`, true, false},
		{`{"request_response_rmt":{"response_body":{"contains":"été"}}}`, false, false},

		// Maps.
		{`{"request_response_rmt":{"property_key":{"equals":"env"}}}`, true, false},
		{`{"request_response_rmt":{"property_key":{"equals":"Env"}}}`, false, false},
		{`{"request_response_rmt":{"property_key":{"equals":"empty"}}}`, true, false},
		{`{"request_response_rmt":{"properties":{"env":{"equals":"Prod"}}}}`, true, false},
		{`{"request_response_rmt":{"properties":{"Env":{"equals":"Prod"}}}}`, false, false},
		{`{"request_response_rmt":{"properties":{"env":{"ilike":"p%"}}}}`, true, false},
		{`{"request_response_rmt":{"properties":{"env":{"not-equals":"x"}}}}`, true, true},
		{`{"request_response_rmt":{"properties":{"empty":{"equals":""}}}}`, true, false},
		{`{"request_response_rmt":{"properties":{"empty":{"not-equals":""}}}}`, false, true},
		{`{"request_response_rmt":{"properties":{"nothing":{"contains":""}}}}`, false, false},
		{`{"request_response_rmt":{"properties":{"nothing":{"not-contains":""}}}}`, true, true},
		{`{"request_response_rmt":{"search_properties":{"env":{"contains":"PRO"}}}}`, true, false},
		{`{"properties":{"env":{"equals":"Prod"}}}`, true, false},
		{`{"values":{"topic":{"contains":"season"}}}`, true, false},
		{`{"values":{"topic":{"not-equals":"x"}}}`, true, true},
		{`{"request_response_rmt":{"scores":{"quality":{"equals":0.5}}}}`, true, false},
		{`{"request_response_rmt":{"scores":{"quality":{"not-equals":0}}}}`, true, false},
		{`{"request_response_rmt":{"scores":{"nothing":{"not-equals":0}}}}`, false, false},
		{`{"request_response_rmt":{"scores":{"service-score-feedback":{"gte":1}}}}`, true, false},

		// The legacy groups.
		{`{"request":{"prompt":{"contains":"ÉTÉ"}}}`, true, false},
		{`{"request":{"prompt":{"equals":""}}}`, false, true},
		{`{"request":{"user_id":{"equals":"u1"}}}`, true, false},
		{`{"request":{"auth_hash":{"equals":"beef"}}}`, true, false},
		{`{"request":{"org_id":{"equals":"acme"}}}`, true, true},
		{`{"request":{"id":{"like":"%cc"}}}`, false, true},
		{`{"request":{"node_id":{"equals":"n1"}}}`, true, false},
		{`{"request":{"model":{"equals":"asked"}}}`, true, false},
		{`{"request":{"modelOverride":{"equals":"forced"}}}`, true, false},
		{`{"request":{"path":{"equals":"/v1/chat/completions"}}}`, true, false},
		{`{"request":{"country_code":{"equals":"DE"}}}`, true, false},
		{`{"request":{"prompt_id":{"equals":"p1"}}}`, true, false},
		{`{"request":{"created_at":{"lt":"2026-11-21"}}}`, true, true},
		{`{"response":{"body_model":{"equals":"answered"}}}`, true, false},
		{`{"response":{"model":{"equals":"answered"}}}`, true, false},
		{`{"response":{"body_completion":{"equals":"Voilà"}}}`, true, false},
		{`{"response":{"body_tokens":{"equals":5}}}`, true, false},
		{`{"response":{"status":{"lt":300}}}`, true, false},
		{`{"feedback":{"id":{"equals":7}}}`, true, false},
		{`{"feedback":{"id":{"not-equals":8}}}`, true, true},
		{`{"feedback":{"created_at":{"gt":"2026-11-20T14:05:00Z"}}}`, true, false},
		{`{"feedback":{"rating":{"equals":true}}}`, true, false},
		{`{"feedback":{"rating":{"equals":false}}}`, false, false},
		{`{"feedback":{"response_id":{"equals":"0190b1c0-0000-4000-8000-0000000000aa"}}}`, true, false},
		{`{"feedback":{"response_id":{"equals":""}}}`, false, true},

		// No request has what only users and sessions have.
		{`{"users_view":{"user_user_id":{"not-equals":"x"}}}`, false, false},
		{`{"sessions_request_response_rmt":{"session_total_cost":{"not-equals":1}}}`, false, false},

		{`{"left":"all","operator":"and","right":{"request":{"user_id":{"equals":"u1"}}}}`, true, false},
		{`{"left":{"request":{"user_id":{"equals":"u1"}}},"operator":"or","right":{"request":{"id":{"like":"%cc"}}}}`, true, true},
		{`{"left":{"request":{"user_id":{"equals":"u1"}}},"operator":"and","right":{"request":{"id":{"like":"%cc"}}}}`, false, false},
	} {
		f, err := storage.ParseFilter([]byte(test.filter))
		if err != nil {
			t.Error(err)
			continue
		}
		for r, want := range map[*storage.Record]bool{call: test.call, bare: test.bare} {
			loads := 0
			got := storage.Match(f, r, func() *storage.Content {
				loads++
				if r == bare {
					return nil
				}
				return texts
			})
			if got != want {
				t.Errorf("%s is %v of the %s record", test.filter, got, map[bool]string{true: "full", false: "bare"}[r == call])
			}
			if most := map[bool]int{true: 1}[storage.ContentParts(f) != 0]; loads > most {
				t.Errorf("%s loads the content %d times", test.filter, loads)
			}
		}
	}
}

func TestEvaluate(t *testing.T) {
	id := func(n byte) uuid.UUID { return uuid.UUID{15: n} }
	at := func(n byte, created storage.Timestamp, cost plugins.Cost, user string) *storage.Record {
		return &storage.Record{ID: id(n), Org: "acme", CreatedAt: created, Cost: cost, UserID: user}
	}
	records := []*storage.Record{
		at(1, 100, plugins.KnownCost(5), "b"),
		at(2, 300, plugins.Cost{}, ""),
		at(3, 200, plugins.KnownCost(7), "a"),
		at(4, 200, plugins.KnownCost(5), "B"),
		{ID: id(5), Org: "globex", CreatedAt: 500},
	}
	records[0].RespondedAt = 400
	records[2].CacheReferenceID = id(9)
	records[3].ExperimentID = "e"
	records[3].Scores = map[string]float64{"q": 0}
	records[1].Properties = map[string]string{"env": "prod"}
	records[3].Properties = map[string]string{"env": ""}
	yes, no := true, false
	by := func(k storage.SortKey, desc bool) []storage.Sort { return []storage.Sort{{Key: k, Desc: desc}} }
	for name, test := range map[string]struct {
		query storage.RequestQuery
		want  []byte
	}{
		"newest first":         {storage.RequestQuery{}, []byte{2, 4, 3, 1}},
		"oldest first":         {storage.RequestQuery{Sort: by(storage.SortCreatedAt, false)}, []byte{1, 3, 4, 2}},
		"cheapest":             {storage.RequestQuery{Sort: by(storage.SortCost, false)}, []byte{1, 4, 3, 2}},
		"dearest":              {storage.RequestQuery{Sort: by(storage.SortCost, true)}, []byte{3, 4, 1, 2}},
		"by bytes":             {storage.RequestQuery{Sort: by(storage.SortUserID, false)}, []byte{4, 3, 1, 2}},
		"by bytes, descending": {storage.RequestQuery{Sort: by(storage.SortUserID, true)}, []byte{1, 3, 4, 2}},
		"last active":          {storage.RequestQuery{Sort: by(storage.SortLastActive, true)}, []byte{1, 2, 4, 3}},
		"cached":               {storage.RequestQuery{Sort: by(storage.SortIsCached, false)}, []byte{1, 2, 4, 3}},
		"cached when":          {storage.RequestQuery{Sort: by(storage.SortCacheCreatedAt, false)}, []byte{3, 1, 2, 4}},
		"a property":           {storage.RequestQuery{Sort: []storage.Sort{{Key: storage.SortProperties, Name: "env"}}}, []byte{4, 2, 1, 3}},
		"a property, down":     {storage.RequestQuery{Sort: []storage.Sort{{Key: storage.SortProperties, Name: "env", Desc: true}}}, []byte{2, 4, 3, 1}},
		"two keys": {storage.RequestQuery{Sort: []storage.Sort{{Key: storage.SortCost}, {Key: storage.SortCreatedAt, Desc: true}}},
			[]byte{4, 1, 3, 2}},
		"only cached":         {storage.RequestQuery{Cached: &yes}, []byte{3}},
		"only scored":         {storage.RequestQuery{Scored: &yes}, []byte{4}},
		"no experiment":       {storage.RequestQuery{Experiment: &no}, []byte{2, 3, 1}},
		"second page":         {storage.RequestQuery{Offset: 2, Limit: 1}, []byte{3}},
		"beyond the last":     {storage.RequestQuery{Offset: 9}, nil},
		"another's":           {storage.RequestQuery{Org: "globex"}, []byte{5}},
		"nobody's":            {storage.RequestQuery{Org: "nobody"}, nil},
		"random and all four": {storage.RequestQuery{Random: true, Limit: 100, Sort: by(storage.SortCost, true)}, []byte{1, 2, 3, 4}},
	} {
		q := test.query
		q.Filter = storage.All{}
		if q.Org == "" {
			q.Org = "acme"
		}
		if q.Limit == 0 {
			q.Limit = 10
		}
		var got []byte
		for _, r := range storage.Evaluate(&q, records, func(*storage.Record) *storage.Content { return nil }) {
			got = append(got, r.ID[15])
		}
		if q.Random {
			slices.Sort(got)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
	none := storage.Evaluate(&storage.RequestQuery{Org: "acme", Filter: storage.All{}}, records, nil)
	if len(none) != 0 {
		t.Errorf("limit 0 answers %d records", len(none))
	}
}

// Pages sorted by content follow the texts of prompts, answers and inputs.
func TestEvaluateByContent(t *testing.T) {
	contents := storagetest.Contents{
		{Segment: 1}: texts,
		{Segment: 2}: {Request: storage.Body{Data: []byte(`{"messages":[{"role":"user","content":"A"}]}`)},
			Inputs: map[string]string{"topic": "A"}},
	}
	first, second := *call, *call
	second.ID, second.Content.Segment = uuid.Max, 2
	for _, key := range []storage.SortKey{storage.SortRequestPrompt, storage.SortResponseText, storage.SortValues} {
		q := &storage.RequestQuery{Org: "acme", Filter: storage.All{}, Limit: 10, Sort: []storage.Sort{{Key: key, Name: "topic"}}}
		got := storage.Evaluate(q, []*storage.Record{bare, &first, &second}, contents.Of)
		want := []*storage.Record{&second, &first, bare}
		if key == storage.SortResponseText {
			want = []*storage.Record{&first, bare, &second}
		}
		if !slices.Equal(got, want) {
			t.Errorf("sorted by %s: %v", key, got)
		}
	}
}

func BenchmarkMatch(b *testing.B) {
	f, err := storage.ParseFilter([]byte(threeLeaves))
	if err != nil {
		b.Fatal(err)
	}
	r := *call
	r.Model, r.Cost = "gpt-4o", plugins.KnownCost(1)
	m := storage.NewMatcher(f, nil)
	b.ReportAllocs()
	for b.Loop() {
		if !m.Match(&r, nil) {
			b.Fatal("no match")
		}
	}
}
