package llmquery_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

var isolationAnswers = flag.Int("isolation", 2000, "answers that TestIsolationUnderLoad reads")

// tenant is an organisation whose records all carry its mark: a text that no
// other has, and a number that all sums and means show. User and session ids are
// the same in all organisations.
type tenant struct {
	org, store string
	mark       float64

	records atomic.Int64
	latest  atomic.Pointer[uuid.UUID]
}

func (n *tenant) text() string { return "only-" + n.org }

// record is a request which costs, takes and scores as much as the mark says, and
// is a session of its own.
func (n *tenant) record() (*storage.Record, *storage.Content) {
	i := n.records.Add(1) - 1
	session := fmt.Sprint("s", i)
	at := storage.Timestamp(1_790_000_000_000 + i*1000)
	user := "shared"
	if i%2 == 0 {
		user = n.text()
	}
	return &storage.Record{
			ID: uuid.Must(uuid.NewV7()), Org: n.org, CreatedAt: at, RespondedAt: at + storage.Timestamp(n.mark*1000),
			Latency: plugins.KnownDuration(time.Duration(n.mark) * time.Second), Cost: plugins.KnownCost(plugins.Nanodollars(n.mark * 1e9)), Model: n.text(),
			UserID: user, SessionID: session, SessionName: n.text(),
			Properties: map[string]string{"Service-Session-Id": session, "Owner": n.text()},
		}, &storage.Content{
			Request: storage.Body{Type: "text/plain", Data: []byte(n.text())},
			Inputs:  map[string]string{"owner": n.text()},
		}
}

// question is one that every organisation asks; shows is what a good answer
// shows, which must not be empty unless the question is for what is another's.
type question struct {
	path, body string
	shows      func(n *tenant, data gjson.Result) bool
	foreign    bool
}

func each(list gjson.Result, holds func(gjson.Result) bool) bool {
	good := true
	list.ForEach(func(_, v gjson.Result) bool {
		good = holds(v)
		return good
	})
	return good
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-6 }

func requestsOf(n *tenant, data gjson.Result) bool {
	return each(data, func(r gjson.Result) bool {
		return r.Get("organization_id").String() == n.org && r.Get("cost").Num == n.mark && r.Get("request_body").String() == n.text()
	})
}

func usersOf(n *tenant, data gjson.Result) bool {
	return each(data.Get("users"), func(u gjson.Result) bool { return near(u.Get("cost").Num, n.mark*u.Get("total_requests").Num) })
}

func sessionsOf(n *tenant, data gjson.Result) bool {
	return each(data, func(s gjson.Result) bool {
		return s.Get("session_name").String() == n.text() && s.Get("avg_latency").Num == n.mark*1000 && s.Get("total_requests").Num == 1
	})
}

var questions = []question{
	{path: bulk, body: `{"filter":"all","includeInputs":true}`, shows: requestsOf},
	{path: bulk, body: `{"filter":{"request_response_rmt":{"user_id":{"equals":"shared"}}},"sort":{"random":true}}`, shows: requestsOf},
	{path: bulk, body: `{"filter":{"left":{"request_response_rmt":{"organization_id":{"not-equals":"x"}}},"operator":"or","right":"all"},"isScored":true}`, shows: requestsOf},
	{path: bulk, body: `{"filter":{"request_response_rmt":{"request_body":{"contains":"only-"}}},"sort":{"request_prompt":"asc"}}`, shows: requestsOf},
	{path: legacy, body: `{"filter":{"values":{"owner":{"contains":"only"}}},"sort":{"cost":"desc"}}`, shows: requestsOf},
	{path: legacy, body: `{"filter":{"request":{"org_id":{"equals":"%s"}}}}`, shows: requestsOf, foreign: true},
	{path: bulk, body: `{"filter":{"request_response_rmt":{"properties":{"Owner":{"equals":"only-%s"}}}}}`, shows: requestsOf, foreign: true},
	{path: "/v1/user/metrics/query", body: `{"sort":{"cost":"desc"}}`, shows: usersOf},
	{path: "/v1/user/metrics/query", body: `{"filter":{"left":{"users_view":{"user_cost":{"gte":0}}},"operator":"or","right":{"request_response_rmt":{"model":{"equals":"only-%s"}}}}}`, shows: usersOf},
	{path: "/v1/user/metrics-overview/query", body: `{"pSize":"p99"}`, shows: func(n *tenant, data gjson.Result) bool {
		counts := data.Get("request_count.#.value").Array()
		i := -1
		return each(data.Get("user_cost.#.value"), func(v gjson.Result) bool { i++; return near(v.Num, n.mark*counts[i].Num) })
	}},
	{path: "/v1/session/query", body: `{"search":"s"}`, shows: sessionsOf},
	{path: "/v1/session/query", body: `{"filter":{"sessions_request_response_rmt":{"session_tag":{"contains":"only"}}}}`, shows: sessionsOf},
	{path: "/v1/session/query", body: `{"nameEquals":"only-%s"}`, shows: sessionsOf, foreign: true},
	{path: "/v1/session/metrics/query", body: `{}`, shows: func(n *tenant, data gjson.Result) bool {
		return near(data.Get("average.session_cost.0.average").Num, n.mark) && near(data.Get("average.session_duration.0.average").Num, n.mark)
	}},
	{path: "/v1/session/tree/query", body: `{"sessionId":"s0","by":"path"}`, shows: func(n *tenant, data gjson.Result) bool {
		return each(data, func(node gjson.Result) bool {
			return near(node.Get("total.cost").Num, n.mark*node.Get("total.requests").Num)
		})
	}},
	{path: "/v1/dashboard/scores/query", body: `{"dbIncrement":"year"}`, shows: func(n *tenant, data gjson.Result) bool {
		return each(data, func(p gjson.Result) bool { return p.Get("score_avg").Num == n.mark })
	}},
	{path: "/v1/session/s0/tag", shows: func(n *tenant, data gjson.Result) bool { return data.String() == n.text() }},
}

// TestIsolationUnderLoad asks everything with every key, at the same time and
// while all organisations record: no answer shows what is another's.
func TestIsolationUnderLoad(t *testing.T) {
	s := newSite(t)
	tenants := []*tenant{{org: "default", store: "default", mark: 1}, {org: "acme", store: "default", mark: 10}, {org: "europe", store: "eu", mark: 100}}
	record := func(n *tenant) error {
		r, content := n.record()
		j := s.journal(n.store)
		if err := j.Append(r, storagetest.Kept(r, content)); err != nil {
			return err
		}
		if err := j.AppendAnnotation(&storage.Annotation{Org: n.org, RequestID: r.ID, At: r.CreatedAt, Scores: map[string]float64{n.text(): n.mark}}); err != nil {
			return err
		}
		if err := j.Flush(t.Context()); err != nil {
			return err
		}
		n.latest.Store(&r.ID)
		return nil
	}
	for _, n := range tenants {
		tag := n.text()
		if err := s.journal(n.store).AppendAnnotation(&storage.Annotation{Org: n.org, SessionID: "s0", Tag: &tag}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := record(n); err != nil {
				t.Fatal(err)
			}
		}
	}
	callers := []struct {
		key, prefix string
		*tenant
	}{{"root", "", tenants[0]}, {"acme", "", tenants[1]}, {"europe", "/eu", tenants[2]}, {"", "/public", tenants[0]}, {"acme", "/public", tenants[1]}}

	const callersAtATime = 8
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callersAtATime}}
	defer client.CloseIdleConnections()
	ask := func(method, path, key, body string) (status int, text string, err error) {
		r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
		if err != nil {
			return 0, "", err
		}
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		response, err := client.Do(r)
		if err != nil {
			return 0, "", err
		}
		defer response.Body.Close()
		answer, err := io.ReadAll(response.Body)
		return response.StatusCode, string(answer), err
	}

	// Some records on the way, but not more than queries can add up again and
	// again.
	recordAt := max(20, *isolationAnswers/500)
	var answers atomic.Int64
	var calls sync.WaitGroup
	for range callersAtATime {
		calls.Go(func() {
			for i := answers.Add(1); i <= int64(*isolationAnswers) && !t.Failed(); i = answers.Add(1) {
				caller, other := callers[rand.IntN(len(callers))], tenants[rand.IntN(len(tenants))]
				if i%int64(recordAt) == 0 {
					if err := record(caller.tenant); err != nil {
						t.Error(err)
					}
				}
				switch i % 10 {
				case 0:
					id := other.latest.Load().String()
					status, text, err := ask(http.MethodGet, caller.prefix+"/v1/request/"+id, caller.key, "")
					if err != nil || (status == http.StatusOK) != (other == caller.tenant) || status != http.StatusOK && status != http.StatusNotFound || caller.shownForeign(tenants, text) {
						t.Errorf("%s asks for a request of %s: %d %s %v", caller.org, other.org, status, text, err)
					}
				case 1:
					elsewhere := "/eu"
					if caller.prefix == "/eu" {
						elsewhere = ""
					}
					status, text, err := ask(http.MethodPost, elsewhere+bulk, caller.key, `{"filter":"all"}`)
					if err != nil || status != http.StatusForbidden && caller.key != "" || status == http.StatusOK {
						t.Errorf("%s asks in another region: %d %s %v", caller.org, status, text, err)
					}
				default:
					q := questions[rand.IntN(len(questions))]
					method, body := http.MethodPost, strings.ReplaceAll(q.body, "%s", other.org)
					if body == "" {
						method = http.MethodGet
					}
					status, text, err := ask(method, caller.prefix+q.path, caller.key, body)
					data := gjson.Get(text, "data")
					empty := data.Raw == "[]" || data.Raw == "null" || data.Get("users").Raw == "[]"
					switch {
					case err != nil || status != http.StatusOK || !json.Valid([]byte(text)):
						t.Errorf("%s %s %s: %d %s %v", caller.org, q.path, body, status, text, err)
					case caller.shownForeign(tenants, text) || !q.shows(caller.tenant, data):
						t.Errorf("%s is shown what is not its own by %s %s: %s", caller.org, q.path, body, text)
					case empty != (q.foreign && other != caller.tenant):
						t.Errorf("%s %s %s: %s", caller.org, q.path, body, text)
					}
				}
			}
		})
	}
	calls.Wait()
}

// shownForeign is true of an answer that carries the text of another tenant.
func (n *tenant) shownForeign(tenants []*tenant, answer string) bool {
	for _, other := range tenants {
		if other != n && strings.Contains(answer, other.text()) {
			return true
		}
	}
	return false
}
