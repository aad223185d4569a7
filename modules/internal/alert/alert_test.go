package alert

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/uuid"
	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
	"github.com/weirhq/weir/storage/control/embedded"
)

// calls is how many calls TestManyCalls makes:
//
//	go test -run ManyCalls ./modules/internal/alert -calls 1000000
var calls = flag.Int("calls", 5_000, "calls of which three nodes tell")

// records answers groups from what it has, in the plainest way.
type records struct {
	mu   sync.Mutex
	all  []*storage.Record
	read int // how many records the queries had in their windows
	down error
}

func (r *records) Groups(ctx context.Context, q *storage.GroupQuery, each func(*storage.GroupTotals) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down != nil {
		return r.down
	}
	g := storage.NewRecordGrouper(q, nil, storage.NewCancelCheck(ctx.Err))
	takes := storage.NewMatcher(q.Filter, storage.NewCancelCheck(ctx.Err))
	first, _ := slices.BinarySearchFunc(r.all, q.Window.From, func(r *storage.Record, from storage.Timestamp) int { return cmp.Compare(r.CreatedAt, from) })
	for _, one := range r.all[first:] { // in the order of time
		if one.Org == q.Org && q.Window.Contains(one.CreatedAt) && takes.Match(one, func() *storage.Content { return nil }) {
			r.read++
			g.Add(one, func() *storage.Content { return nil })
		}
	}
	return g.Answer(each)
}

// add records a call that costs dollars and began now.
func (r *records) add(user string, dollars float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := storage.Millis(time.Now())
	r.all = append(r.all, &storage.Record{
		Org: "acme", ID: uuid.New(), CreatedAt: now, RespondedAt: now, UserID: user, Cost: plugins.KnownCost(plugins.Nanodollars(dollars * 1e9)), EndState: storage.Complete,
	})
}

// receiver is a channel that keeps what it got.
type receiver struct {
	mu   sync.Mutex
	got  []message
	down error
}

func (r *receiver) send(_ context.Context, m message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down == nil {
		r.got = append(r.got, m)
	}
	return r.down
}

// told are the states and subjects that the channel was told.
func (r *receiver) told() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.got {
		all = append(all, m.State+" "+m.Rule+" "+m.Subject)
	}
	return all
}

func openLog(t testing.TB) control.Log {
	t.Helper()
	log, err := embedded.Open(t.TempDir(), nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close(context.Background()) })
	return log
}

func newEngine(t testing.TB, log control.Log, g storage.Grouper, channels map[string]*receiver, rules ...*Rule) *Engine {
	t.Helper()
	o := Options{
		Org: "acme", Logger: zap.NewNop(), Control: func() (control.Log, error) { return log, nil },
		Groups: func() (storage.Grouper, error) { return g, nil },
	}
	for name, r := range channels {
		o.Channels = append(o.Channels, &Channel{Name: name, send: r.send})
	}
	e := New(o)
	for _, r := range rules {
		if err := r.Provision(e.ChannelNames()); err != nil {
			t.Fatal(err)
		}
	}
	e.Rules = rules
	return e
}

// minute lets a minute pass, then evaluates and sends at each engine.
func minute(t *testing.T, engines ...*Engine) {
	t.Helper()
	time.Sleep(time.Minute)
	var all sync.WaitGroup
	for _, e := range engines {
		all.Go(func() {
			e.Evaluate(t.Context(), time.Now())
			e.Deliver(t.Context())
		})
	}
	all.Wait()
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func dearRule() *Rule {
	return &Rule{Name: "dear", Total: "cost", Operator: ">", Threshold: 10, Over: caddy.Duration(time.Hour), Per: "user", To: []string{"ops"}}
}

func TestOneMessageOfManyNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, db, ops := openLog(t), new(records), new(receiver)
		var nodes []*Engine
		for range 3 {
			nodes = append(nodes, newEngine(t, log, db, map[string]*receiver{"ops": ops}, dearRule()))
		}
		for range 50 { // above the threshold all the time
			db.add("ada", 3)
			db.add("bob", 0.01)
			minute(t, nodes...)
		}
		want(t, ops.told(), "firing dear ada")
		for range 70 {
			minute(t, nodes...)
		}
		want(t, ops.told(), "firing dear ada", "resolved dear ada")
		for range 10 {
			db.add("ada", 3)
			minute(t, nodes...)
		}
		want(t, ops.told(), "firing dear ada", "resolved dear ada", "firing dear ada")
		if first, third := ops.got[0], ops.got[2]; first.Firing.ID == third.Firing.ID || first.Delivery.ID == third.Delivery.ID {
			t.Error("another window has the same id")
		}
	})
}

// A rule over very many calls tells once in each window, whichever of the nodes is first, and once
// that it is over.
func TestManyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const window, windows = 60, 2 // minutes
		log, db, ops := openLog(t), new(records), new(receiver)
		var nodes []*Engine
		for range 3 {
			nodes = append(nodes, newEngine(t, log, db, map[string]*receiver{"ops": ops}, &Rule{
				Name: "busy", Total: "requests", Operator: ">", Threshold: 100, Over: caddy.Duration(10 * time.Minute), To: []string{"ops"},
			}))
		}
		slots := make(map[storage.Timestamp]bool)
		for range window * windows {
			db.add("ada", 1)
			call := db.all[len(db.all)-1]
			db.all = append(db.all, slices.Repeat([]*storage.Record{call}, *calls/(window*windows))...)
			slots[slot(nodes[0].Rules[0], storage.Millis(time.Now().Add(time.Minute)))] = true
			minute(t, nodes...)
		}
		want(t, ops.told(), "firing busy ") // it is one alert as long as it lasts
		for range 20 {
			minute(t, nodes...)
		}
		want(t, ops.told(), "firing busy ", "resolved busy ")
		if len(db.all) < *calls || len(slots) < windows {
			t.Errorf("%d calls in %d windows are no test", len(db.all), len(slots))
		}
	})
}

// Whoever names users decides how many subjects a rule has, but not how many messages are sent.
func TestManySubjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, db, ops := openLog(t), new(records), new(receiver)
		dear := dearRule()
		dear.Over = caddy.Duration(10 * time.Minute)
		e := newEngine(t, log, db, map[string]*receiver{"ops": ops}, dear)
		for i := range 10_000 {
			db.add(fmt.Sprint("user ", i), float64(11+i))
		}
		for range 3 {
			minute(t, e)
		}
		told := ops.told()
		if len(told) != maxSubjects+1 || !slices.Contains(told, "firing dear user 9999") || !slices.Contains(told, "firing dear "+othersSubject) {
			t.Errorf("%d messages: %q", len(told), told)
		}
		for _, m := range ops.got {
			if m.Subject == othersSubject && m.Value != 10_000-maxSubjects {
				t.Errorf("there are %v others", m.Value)
			}
		}
		for range 15 {
			minute(t, e)
		}
		if told = ops.told(); len(told) != 2*(maxSubjects+1) {
			t.Errorf("%d messages after the end", len(told))
		}
	})
}

// A channel that takes its time, and one that hangs, keep no message from another channel.
func TestSlowChannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, db, ops := openLog(t), new(records), new(receiver)
		e := newEngine(t, log, db, map[string]*receiver{"ops": ops}, dearRule())
		e.Channels = append(e.Channels,
			&Channel{Name: "slow", send: func(context.Context, message) error { time.Sleep(sendTimeout - time.Second); return nil }},
			&Channel{Name: "hangs", send: func(ctx context.Context, _ message) error { <-ctx.Done(); return ctx.Err() }},
		)
		e.Rules[0].To = e.ChannelNames()
		for i := range 20 {
			db.add(fmt.Sprint("user ", i), 11)
		}
		minute(t, e)
		db.add("ada", 11)
		time.Sleep(time.Minute)
		began := time.Now()
		e.Evaluate(t.Context(), began)
		for len(ops.told()) < 21 {
			e.Deliver(t.Context())
		}
		if took := time.Since(began); took > sendTimeout {
			t.Errorf("the message came after %s", took)
		}
	})
}

func TestReceiverDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, db := openLog(t), new(records)
		ops, boss := &receiver{down: errors.New("connection refused")}, new(receiver)
		channels := map[string]*receiver{"ops": ops, "boss": boss}
		e := newEngine(t, log, db, channels, dearRule())
		db.add("ada", 11)
		minute(t, e)
		for range 120 { // ten minutes
			time.Sleep(5 * time.Second)
			e.Deliver(t.Context())
		}
		want(t, boss.told(), "firing channel ops ops")

		// The process is killed in an attempt: what it began stays as it was committed.
		killed, kill := context.WithCancel(t.Context())
		defer kill()
		ops.down = nil
		for _, c := range e.Channels {
			if c.Name == "ops" {
				c.send = func(context.Context, message) error { kill(); return context.Canceled }
			}
		}
		for killed.Err() == nil {
			time.Sleep(5 * time.Second)
			e.Deliver(killed)
		}
		next := newEngine(t, log, db, channels, dearRule())
		for range 60 {
			time.Sleep(5 * time.Second)
			next.Deliver(t.Context())
		}
		want(t, ops.told(), "firing dear ada")
		want(t, boss.told(), "firing channel ops ops", "resolved channel ops ops")
		org, _ := next.Organisation()
		all, err := org.Firings(t.Context(), control.Page{})
		if err != nil {
			t.Fatal(err)
		}
		d := all[0].Deliveries[0]
		if d.ID != ops.got[0].Delivery.ID || d.DeliveredAt == nil || d.NextAt != nil || d.Error != "" || d.Attempts < 4 {
			t.Errorf("it is kept as %+v", d)
		}
		if _, err := next.Redeliver(t.Context(), org, all[0].ID); err != nil {
			t.Fatal(err)
		}
		next.Deliver(t.Context())
		if len(ops.got) != 2 || ops.got[1].Delivery.ID != d.ID {
			t.Errorf("it is sent again as %+v", ops.got)
		}
	})
}

func TestGivesUpAfterADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, db, ops := openLog(t), new(records), &receiver{down: errors.New("no")}
		e := newEngine(t, log, db, map[string]*receiver{"ops": ops}, dearRule())
		db.add("ada", 11)
		minute(t, e)
		for range 26 * 60 {
			time.Sleep(time.Minute)
			e.Deliver(t.Context())
		}
		org, _ := e.Organisation()
		all, _ := org.Firings(t.Context(), control.Page{})
		if d := all[0].Deliveries[0]; d.NextAt != nil || d.DeliveredAt != nil || d.Error != "no" || d.Attempts < 20 {
			t.Errorf("after a day it is %+v", d)
		}
		events, err := log.Events(t.Context(), org.Name, all[0].ID, "", 100)
		if err != nil || len(events) != 1 || events[0].Action != "alert.created" {
			t.Errorf("the audit log has the attempts to deliver a message: %+v, %v", events, err)
		}
	})
}

func TestAbsence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, db, ops := openLog(t), new(records), new(receiver)
		all := &Rule{Name: "silence", Total: "requests", Operator: "<", Threshold: 1, Over: caddy.Duration(time.Hour), To: []string{"ops"}}
		each := &Rule{Name: "gone", Total: "requests", Operator: "<", Threshold: 1, Over: caddy.Duration(time.Hour), Per: "user", To: []string{"ops"}}
		e := newEngine(t, log, db, map[string]*receiver{"ops": ops}, all, each)
		db.add("ada", 1)
		for range 30 {
			minute(t, e)
			db.add("bob", 1)
		}
		want(t, ops.told())
		for range 40 {
			minute(t, e)
			db.add("bob", 1)
		}
		want(t, ops.told(), "firing gone ada")
		for range 70 {
			minute(t, e)
		}
		got := ops.told()
		slices.Sort(got)
		want(t, got, "firing gone ada", "firing gone bob", "firing silence ")
	})
}

// A bill that cannot be read hides no other, and resolves nothing.
func TestMeasureWithAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ops := new(receiver)
		e := newEngine(t, openLog(t), new(records), map[string]*receiver{"ops": ops}, &Rule{
			Name: "bill", Total: BillDifferences, Operator: ">", Over: caddy.Duration(7 * 24 * time.Hour), To: []string{"ops"},
		})
		values, failure := map[string]float64{"openai": 2}, error(nil)
		e.Measures = map[string]Measure{BillDifferences: func(context.Context, time.Duration) (map[string]float64, error) { return values, failure }}
		minute(t, e)
		want(t, ops.told(), "firing bill openai")
		values, failure = map[string]float64{"anthropic": 1}, errors.New("bill openai: 401")
		for range 5 {
			minute(t, e)
		}
		want(t, ops.told(), "firing bill openai", "firing bill anthropic")
		values, failure = map[string]float64{"openai": 0, "anthropic": 1}, nil
		for range 5 {
			minute(t, e)
		}
		want(t, ops.told(), "firing bill openai", "firing bill anthropic", "resolved bill openai")
	})
}

// A session is one subject, whatever names its calls give it.
func TestSessionOfSeveralNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, db, ops := openLog(t), new(records), new(receiver)
		r := dearRule()
		r.Per = "session"
		e := newEngine(t, log, db, map[string]*receiver{"ops": ops}, r)
		for i, name := range []string{"a", "b", "b"} {
			db.add("ada", 4)
			db.all[i].SessionID, db.all[i].SessionName = "s", name
		}
		minute(t, e)
		want(t, ops.told(), "firing dear s")
		if v := ops.got[0].Value; v != 12 {
			t.Errorf("the session cost %v", v)
		}
	})
}

// twiceRule fires when an hour costs more than twice the same hour of last week.
func twiceRule() *Rule {
	return &Rule{Name: "twice", Total: "cost", Operator: ">", Threshold: 2, Over: caddy.Duration(time.Hour), Than: "last_week", To: []string{"ops"}}
}

func TestThanLastWeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, db, ops := openLog(t), new(records), new(receiver)
		e := newEngine(t, log, db, map[string]*receiver{"ops": ops}, twiceRule())
		db.add("ada", 1)
		time.Sleep(7*24*time.Hour - 10*time.Minute)
		db.add("ada", 5) // nothing a week ago: unknown
		minute(t, e)
		want(t, ops.told())
		time.Sleep(12 * time.Minute)
		minute(t, e)
		want(t, ops.told(), "firing twice ")
		if v := ops.got[0].Value; v != 5 {
			t.Errorf("it is %v times last week", v)
		}
	})
}

// What cannot be read is not compared: neither the sum of this hour with a number of times, nor
// that of an hour that is over.
func TestRecordsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, db, ops := openLog(t), new(records), new(receiver)
		e := newEngine(t, log, db, map[string]*receiver{"ops": ops}, twiceRule())
		db.add("ada", 5)
		time.Sleep(7*24*time.Hour - time.Minute)
		db.add("ada", 5)
		time.Sleep(time.Minute)
		minute(t, e)
		want(t, ops.told())
		db.down = errors.New("the database is down")
		stale := dearRule()
		stale.Threshold = 4
		if err := stale.Provision(e.ChannelNames()); err != nil {
			t.Fatal(err)
		}
		stale.Per, stale.by = "", nil
		e.Rules = append(e.Rules, stale)
		for range 70 {
			minute(t, e)
		}
		want(t, ops.told())
		db.down = nil
		for range 2 {
			minute(t, e)
		}
		want(t, ops.told())
	})
}

// A total that no rule names any more is not read.
func TestSeriesForgetTotals(t *testing.T) {
	cost, requests, e := dearRule(), dearRule(), new(Engine)
	requests.Total = "requests"
	e.series = e.seriesFor([]*Rule{cost, requests})
	s := e.seriesFor([]*Rule{cost})[cost.question(0)]
	if len(s.totals) != 1 || s.totals[storage.TotalKey(cost.Total)] == nil {
		t.Errorf("the totals are %v", slices.Collect(maps.Keys(s.totals)))
	}
}

// TestSeries compares the totals of windows that are read in parts with those of one query. Rules
// that ask the same of records share the answer, also one that comes later.
func TestSeries(t *testing.T) {
	for _, over := range []time.Duration{time.Minute, 10 * time.Minute, 6 * time.Hour, 7 * 24 * time.Hour} {
		t.Run(over.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := new(records)
				r := dearRule()
				r.Over = caddy.Duration(over)
				if err := r.Provision([]string{"ops"}); err != nil {
					t.Fatal(err)
				}
				more, later := *r, *r
				more.Name, more.Threshold = "more", 2
				later.Name, later.Total = "later", "requests"
				rules, e := []*Rule{r, &more}, new(Engine)
				for i := range 200 {
					if i == 100 {
						rules = append(rules, &later)
					}
					for range rand.IntN(3) {
						db.add(fmt.Sprint("user ", rand.IntN(3)), 1)
					}
					time.Sleep(time.Duration(rand.IntN(3)) * over / 100)
					time.Sleep(time.Minute - time.Duration(time.Now().UnixNano())%time.Minute)
					now := storage.Millis(time.Now())
					if e.series = e.seriesFor(rules); len(e.series) != 1 {
						t.Fatalf("%d questions", len(e.series))
					}
					for _, r := range rules {
						got, err := e.series[r.question(0)].totalsAt(t.Context(), db, "acme", storage.TotalKey(r.Total), now)
						if err != nil {
							t.Fatal(err)
						}
						whole, err := new(Engine).seriesFor([]*Rule{r})[r.question(0)].totalsAt(t.Context(), db, "acme", storage.TotalKey(r.Total), now)
						if err != nil {
							t.Fatal(err)
						}
						if !maps.Equal(got, whole) {
							t.Fatalf("%v: %s is %v, want %v", time.Now(), r.Total, got, whole)
						}
					}
				}
			})
		})
	}
}

func TestChannels(t *testing.T) {
	var path, body string
	var header http.Header
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		path, body, header = r.URL.Path, string(text), r.Header
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "sorry")
	}))
	defer server.Close()
	secret := "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("s", 32)))
	at := storage.Timestamp(1767225600000)
	f := &control.Firing{ID: "alert_1", Org: "acme", Rule: "dear", Per: "user", Subject: "<!channel> *ada*", Condition: "cost > 10 over 1h", Value: 12.5, FiredAt: at}
	m := message{f, control.Delivery{ID: "msg_1", State: control.StateFiring}}
	for _, test := range []struct {
		channel Channel
		want    map[string]string
	}{
		{Channel{Kind: "webhook", Secrets: []string{secret}, Address: server.URL + "/hook"}, map[string]string{
			"type": "alert.firing", "timestamp": "2026-01-01T00:00:00Z", "data.id": "alert_1", "data.subject": "<!channel> *ada*", "data.value": "12.5", "data.resolved_at": "",
		}},
		{Channel{Kind: "slack", Address: server.URL + "/hook"}, map[string]string{
			"text": "*Firing: dear, user &lt;!channel&gt; *ada**\nCondition: cost &gt; 10 over 1h\nValue when it fired: 12.5\nOrganisation: acme\nSince: Thu, 01 Jan 2026 00:00:00 UTC\nAlert: alert_1",
		}},
		{Channel{Kind: "teams", Address: server.URL + "/hook"}, map[string]string{
			"type": "message", "attachments.0.content.body.0.text": `Firing: dear, user &lt;!channel&gt; \*ada\*`, "attachments.0.content.body.1.facts.0.value": "cost &gt; 10 over 1h",
		}},
		{Channel{Kind: "pagerduty", Address: "key", URL: server.URL + "/hook"}, map[string]string{
			"routing_key": "key", "event_action": "trigger", "dedup_key": "alert_1", "payload.severity": "warning", "payload.source": "acme", "payload.custom_details.rule": "dear",
		}},
	} {
		t.Run(test.channel.Kind, func(t *testing.T) {
			c := test.channel
			c.Name = "ops"
			if err := c.Provision(); err != nil {
				t.Fatal(err)
			}
			status = http.StatusOK
			if err := c.send(t.Context(), m); err != nil || path != "/hook" {
				t.Fatal(err, path)
			}
			for field, value := range test.want {
				if got := gjson.Get(body, field).String(); got != value {
					t.Errorf("%s is %q, want %q", field, got, value)
				}
			}
			if c.Kind == "webhook" && (header.Get("Webhook-Id") != "msg_1" || !strings.HasPrefix(header.Get("Webhook-Signature"), "v1,")) {
				t.Errorf("the header is %v", header)
			}
			status = http.StatusFound
			if err := c.send(t.Context(), m); err == nil || err.Error() != "it answered 302 Found: sorry" {
				t.Errorf("a redirect is %v", err)
			}
			server.CloseClientConnections()
			gone := httptest.NewServer(http.NotFoundHandler())
			address := gone.URL
			gone.Close()
			if err := post(t.Context(), address+"/secret", nil, nil); err == nil || strings.Contains(err.Error(), "secret") {
				t.Errorf("the error tells the address: %v", err)
			}
		})
	}
}

// Many receivers repeat what they were sent. An error is kept, logged and shown.
func TestErrorsHaveNoSecret(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, "%s Cannot POST %s: %s", strings.Repeat(" ", 150), r.RequestURI, body)
	}))
	defer server.Close()
	for _, c := range []*Channel{
		{Kind: "slack", Address: server.URL + "/services/T0/B0/hush?token=hush"},
		{Kind: "teams", Address: server.URL + "/hush%20hush"},
		{Kind: "pagerduty", Address: "hush", URL: server.URL + "/v2"},
	} {
		c.Name = "ops"
		if err := c.Provision(); err != nil {
			t.Fatal(err)
		}
		log, db := openLog(t), new(records)
		e := newEngine(t, log, db, nil)
		e.Channels = []*Channel{c}
		org, err := e.Organisation()
		if err != nil {
			t.Fatal(err)
		}
		d, err := e.Test(t.Context(), org, "ops")
		if err != nil || !strings.HasPrefix(d.Error, "it answered 404 Not Found: Cannot POST ") || strings.Contains(d.Error, "hush") {
			t.Errorf("%s: %q, %v", c.Kind, d.Error, err)
		}
	}
}

func TestBadConfigurations(t *testing.T) {
	for text, problem := range map[string]string{
		`{}`: "takes a name",
		`{"name": "a", "total": "costs", "operator": ">", "to": ["ops"], "over": "1h"}`:                                                    `did you mean "cost"`,
		`{"name": "a", "total": "cost", "operator": "!", "to": ["ops"], "over": "1h"}`:                                                     "one of > >= < <=",
		`{"name": "a", "total": "cost", "operator": ">", "to": ["ops"]}`:                                                                   "whole minutes",
		`{"name": "a", "total": "cost", "operator": ">", "to": ["ops"], "over": "90s"}`:                                                    "whole minutes",
		`{"name": "a", "total": "latency.p95", "operator": ">", "to": ["ops"], "over": "2h"}`:                                              "1h at most",
		`{"name": "a", "total": "cost", "operator": ">", "to": ["bob"], "over": "1h"}`:                                                     `no channel "bob" in the configuration; it has ops`,
		`{"name": "a", "total": "cost", "operator": ">", "over": "1h"}`:                                                                    "names no channel",
		`{"name": "a", "total": "cost", "operator": ">", "to": ["ops"], "over": "1h", "per": "team"}`:                                      "property.<name>",
		`{"name": "a", "total": "key_days_left", "operator": "<", "to": ["ops"], "over": "1h"}`:                                            "leave out `over`",
		`{"name": "a", "total": "budget_percent", "operator": ">", "to": ["ops"], "per": "user"}`:                                          "leave out",
		`{"name": "a", "total": "cost", "operator": ">", "to": ["ops"], "over": "1h", "than": "yesterday"}`:                                "last_week",
		`{"name": "a", "total": "cost", "operator": ">", "to": ["ops"], "over": "1h", "address": "http://169.254.169.254"}`:                "address",
		`{"name": "a", "total": "cost", "operator": ">", "to": ["ops"], "over": "1h", "filter": {"request_response_rmt": {"colour": {}}}}`: "colour",
	} {
		e := New(Options{Channels: []*Channel{{Name: "ops"}}})
		if _, err := e.Read(json.RawMessage(text)); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, c := range []Channel{
		{Name: "a", Kind: "webhook", Address: "https://example.com"}, {Name: "a", Kind: "webhook", Address: "https://example.com", Secrets: []string{"whsec_abc"}},
		{Name: "a", Kind: "slack", Address: "file:///etc/passwd"}, {Name: "a", Kind: "sms", Address: "1"}, {Name: "a", Kind: "slack", Address: "{env.NOT_SET_AT_ALL}"},
		{Name: "a", Kind: "email", Address: "ops@example.com", From: "weir@example.com"}, {Name: "a", Kind: "email", Address: "ops", From: "weir@example.com", SMTP: "localhost:25"},
		{Name: "a", Kind: "email", Address: "ops@example.com", From: "weir@example.com", SMTP: "localhost:25", User: "weir"},
	} {
		if err := c.Provision(); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

// What a receiver repeats of the address of a webhook is not told, in no form and to no part.
func TestErrorsTellNoAddress(t *testing.T) {
	const token = "XXXXcanaryXXXXcanary"
	c := Channel{Kind: "slack", Address: "https://hooks.example.com/services/T1/" + token}
	for text, want := range map[string]string{
		"no such path /services/T1/" + token:       "no such path [redacted]",
		`{"path":"\/services\/T1\/` + token + `"}`: `{"path":"[redacted]"}`,
		"no such hook " + token + ", sorry":        "no such hook [redacted], sorry",
		"no such path /services/T1/" + token[:10]:  "no such path ",
		"no such hook " + token[:10]:               "no such hook ",
		`it is \/services\/T1\/XXXX`:               "it is ",
		"the service is busy":                      "the service is busy",
	} {
		if got := c.redact(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// A name that a caller chose adds no lines to a message, and turns no direction.
func TestSubjectsAreOneLine(t *testing.T) {
	m := message{Firing: &control.Firing{Rule: "dear", Per: "user", Subject: "eve\r\nAlert: all is well\u2028\u202eevil\x1b[31m"}, Delivery: control.Delivery{State: control.StateFiring}}
	if got, want := m.title(), "Firing: dear, user eve  Alert: all is well evil [31m"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Alerts of long ago are deleted, also those that follow more than a page of others that still fire.
func TestPrune(t *testing.T) {
	org := &control.Organisation{Log: openLog(t), Name: "acme", By: control.Actor{Key: "weir"}}
	now := storage.Millis(time.Now())
	recent := now - retention/2
	add := func(id string, firedAt storage.Timestamp, resolvedAt *storage.Timestamp) {
		f := &control.Firing{ID: id, Org: "acme", Rule: "dear", FiredAt: firedAt, ResolvedAt: resolvedAt}
		if _, err := org.Fire(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	for i := range prunePage {
		add(fmt.Sprint("alert_fires", i), 0, nil)
	}
	var old storage.Timestamp
	for i := range 2 * prunePage {
		add(fmt.Sprint("alert_old", i), 0, &old)
	}
	add("alert_resolved", 0, &recent)
	add("alert_recent", recent, &recent)
	if err := prune(t.Context(), org, now); err != nil {
		t.Fatal(err)
	}
	kept, err := org.Firings(t.Context(), control.Page{})
	if err != nil || len(kept) != prunePage+2 || slices.ContainsFunc(kept, func(f *control.Firing) bool { return strings.HasPrefix(f.ID, "alert_old") }) {
		t.Errorf("%d alerts are kept, %v", len(kept), err)
	}
}
