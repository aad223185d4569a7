//go:build !race

package standard

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/testkit/freeport"
	"github.com/weirhq/weir/modules/llmadmin"
)

// Names that callers make up are no labels of metrics.
func TestNamesAreNoLabels(t *testing.T) {
	s := serve(t)
	s.send("POST", "/logged/chat/completions", "walker-root", jsonType, []byte(`{"model":"gpt-4o-mini","messages":[{"role":"user","content":"a"}]}`))
	lines := func() int {
		all := s.send("GET", "/metrics", "walker-root", jsonType, nil, "Accept-Encoding", "identity").body
		// Caddy looks at the configured upstreams every 10 seconds, and has a line for each since.
		return strings.Count(all, "\n") - strings.Count(all, "\ncaddy_reverse_proxy_upstreams_healthy")
	}
	for _, r := range routes(t) {
		if !r.isLane() {
			continue
		}
		call := func(n int) {
			for _, body := range s.bodies("label") {
				body = bytes.ReplaceAll(body, []byte("echo-1"), fmt.Appendf(nil, "gpt-4o-mini@%d", n))
				body = bytes.ReplaceAll(body, []byte("gpt-4o-mini\""), fmt.Appendf(nil, "gpt-4o-mini@%d\"", n))
				body = bytes.ReplaceAll(body, []byte(`"attributes":[`), fmt.Appendf(nil, `"attributes":[{"key":"gen_ai.provider.name","value":{"stringValue":"p%d"}},{"key":"gen_ai.request.model","value":{"stringValue":"m%d"}},`, n, n))
				s.send(r.Method, s.path(r), "walker-root", typeOf(body), body)
			}
		}
		call(0)
		before := lines()
		for n := range 3 {
			call(n + 1)
		}
		if more := lines() - before; more > 0 {
			t.Errorf("%s: %d lines of metrics for three names", r, more)
		}
	}
}

// No body makes any route take more memory than a bound.
func TestBombsAreRefused(t *testing.T) {
	s := serve(t)
	all := bombs(t)
	logged := false
	for _, r := range routes(t) {
		if !r.takesBody() || r.Path == "/v1/files" { // which passes a file on as it comes
			continue
		}
		passes := r.handler == "llm_log" // whose routes differ by their dialect alone
		if passes && logged {
			continue
		}
		logged = logged || passes
		for name, bomb := range all {
			var a answer
			took := allocated(func() {
				body, header := bomb()
				a = s.stream(r.Method, s.path(r), "walker-root", jsonType, body, header...)
			})
			if *full {
				s.attack(r, name, bomb)
			}
			if took > mostAllocated || a.status >= 500 && a.status != http.StatusServiceUnavailable {
				t.Errorf("%s: %s takes %d MiB, %d %.200s", r, name, took>>20, a.status, a.body)
			}
			refused := a.status == http.StatusRequestEntityTooLarge || r.handler == paid && a.status == http.StatusUnsupportedMediaType
			if r.isLane() && !passes && name == "gzip" && !refused && !strings.HasSuffix(r.Path, "cancel") {
				t.Errorf("%s: a body of 640 MiB is answered with %d %.200s", r, a.status, a.body)
			}
		}
	}
	for _, r := range new(llmadmin.API).Routes() {
		for name, bomb := range all {
			body, header := bomb()
			request := httptest.NewRequest(http.MethodPost, r.Pattern, body)
			for i := 0; i < len(header); i += 2 {
				request.Header.Set(header[i], header[i+1])
			}
			if took := allocated(func() { _ = r.Handler.ServeHTTP(httptest.NewRecorder(), request) }); took > mostAllocated {
				t.Errorf("the admin route %s: %s takes %d MiB", r.Pattern, name, took>>20)
			}
		}
	}
}

// However an answer ends, all lanes tell the client the same, ask the provider as often, and record
// the same. What a provider may answer is generated from one stream and one object of each dialect,
// and from a table of what vendors are known to send.
func TestEveryLaneTellsTheSameEnd(t *testing.T) {
	var all []*way
	var of []*speaker
	for _, s := range speakers {
		for _, w := range slices.Concat(s.odd, s.generated(), s.refusals()) {
			all, of = append(all, &w), append(of, s)
		}
	}
	asked := make([]atomic.Int64, len(all)*lanesOfAWay)
	number := regexp.MustCompile(`ends-(\d+)-(\d+)`)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		found := number.FindStringSubmatch(r.URL.Path + string(body))
		if found == nil {
			t.Error("the provider cannot tell what is asked by", r.URL.Path, string(body))
			return
		}
		n, _ := strconv.Atoi(found[1])
		lane, _ := strconv.Atoi(found[2])
		asked[n*lanesOfAWay+lane].Add(1)
		all[n].answer.write(w)
	}))
	defer provider.Close()
	s := &site{t: t, dir: t.TempDir()}
	t.Setenv("XDG_DATA_HOME", s.dir)
	address := freeport.Address(t)
	s.url = "http://" + address
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "catalog.json"), prices(), 0o600); err != nil {
		t.Fatal(err)
	}
	load(t, fmt.Sprintf(endsConfig, s.dir, provider.URL, port, proxies(provider.URL)))

	records := make([]string, len(asked)) // their ids, by way and lane
	turns := make(chan struct{}, 48)      // most of the time is spent in pauses before the second try
	var wg sync.WaitGroup
	for n, w := range all {
		for lane, d := range append([]*door{nil}, doors...) {
			if d != nil && d == of[n].other {
				continue
			}
			turns <- struct{}{}
			wg.Go(func() {
				defer func() { <-turns }()
				model := fmt.Sprintf("ends-%d-%d", n, lane)
				if d == nil {
					records[n*lanesOfAWay] = s.pass(of[n], w, model)
					return
				}
				tools := ""
				if w.tools {
					tools = d.tools
				}
				resp, body := s.call(d.path, fmt.Sprintf(d.ask, of[n].provider+"/"+model, w.stream, tools), "Authorization")
				records[n*lanesOfAWay+lane] = resp.Header.Get("Service-Id")
				if w.repair && d.path == of[n].native {
					return
				}
				got := d.listen(resp, body)
				got.tries = int(asked[n*lanesOfAWay+lane].Load())
				want := w.want
				if d == messagesDoor {
					want.code = "" // its errors have a type alone
				}
				if diff := got.differs(want); diff != "" {
					t.Errorf("%s, %s, stream %v, at %s:\n%s\n%.600s", of[n].provider, w.name, w.stream, d.path, diff, body)
				}
				if passes := d.path == of[n].native && w.events; w.stream && got.status == http.StatusOK && !passes && !d.opens(body) {
					t.Errorf("%s, %s, at %s: nothing opens the stream\n%.600s", of[n].provider, w.name, d.path, body)
				}
			})
		}
	}
	wg.Wait()

	s.flush()
	found := make(map[string]gjson.Result)
	for offset := 0; ; offset += 100 {
		page := gjson.Get(s.send("POST", "/v1/request/query", "ends", jsonType, fmt.Appendf(nil, `{"filter":"all","limit":100,"offset":%d}`, offset)).body, "data").Array()
		if len(page) == 0 {
			break
		}
		for _, r := range page {
			found[r.Get("request_id").Str] = r
		}
	}
	for n, w := range all {
		lanes := make(map[int]gjson.Result)
		for lane := range lanesOfAWay {
			id := records[n*lanesOfAWay+lane]
			if id == "" {
				continue
			}
			d := append([]*door{nil}, doors...)[lane]
			if says := w.recorded(of[n], d, found[id]); says != "" {
				t.Errorf("%s, %s, stream %v, lane %d: %s", of[n].provider, w.name, w.stream, lane, says)
			}
			if i := slices.IndexFunc(doors, func(d *door) bool { return d.path == of[n].native }); d == nil && i >= 0 {
				d = doors[i]
			}
			if d != nil && w.want.status == http.StatusOK && w.want.end != failed {
				if says := d.lacks(found[id], w.want); says != "" {
					t.Errorf("%s, %s, stream %v, lane %d: %s", of[n].provider, w.name, w.stream, lane, says)
				}
			}
			lanes[lane] = found[id]
		}
		if says := w.unequal(lanes); says != "" {
			t.Errorf("%s, %s, stream %v: %s", of[n].provider, w.name, w.stream, says)
		}
	}
	t.Logf("%d ways, %d calls, %d records", len(all), len(slices.DeleteFunc(records, func(id string) bool { return id == "" })), len(found))
}
