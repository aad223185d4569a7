package llmotlp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/modules/internal/intake"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage"

	_ "github.com/weirhq/weir/storage/sqlite"
)

// FuzzSpans: no request panics, and what is kept of it is whole and bounded.
func FuzzSpans(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if request, err := parse(f, jsonText, body); err == nil {
			f.Add(true, body)
			body, err := proto.Marshal(request)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(false, body)
		}
	}
	headers := testHeaders(f)
	f.Fuzz(func(t *testing.T, isJSON bool, body []byte) {
		encoding := protobuf
		if isJSON {
			encoding = jsonText
		}
		request, err := parse(t, encoding, body)
		if err != nil {
			return
		}
		for _, resource := range request.ResourceSpans {
			common := make(attributes)
			common.add(resource.GetResource().GetAttributes())
			for _, scope := range resource.GetScopeSpans() {
				for _, span := range scope.GetSpans() {
					c, _ := newCall(span, common, new(catalog.Catalog))
					if c == nil || check(span, time.Now()) != nil {
						continue
					}
					r := &storage.Record{ID: recordID("org", span)}
					c.caller(headers, new(control.Controls), r)
					c.describe(r, new(catalog.Catalog))
					c.answered(r)
					content := c.content(r).Content(r)
					for _, body := range []storage.Body{content.Request, content.Response} {
						if body.Type == string(jsonText) && len(body.Data) < maxBody && !json.Valid(body.Data) {
							t.Errorf("no JSON: %s", body.Data)
						}
					}
					if r.Usage.CacheRead.N > r.Usage.Input.N && r.Usage.Input.Valid {
						t.Errorf("a part is more than the whole: %+v", r.Usage)
					}
					if r.RequestOmitted && (content.Request.Data != nil || content.Inputs != nil) {
						t.Error("what is omitted is kept")
					}
					if len(r.UserID) > 1<<10 || len(r.Properties) > 110 || max(len(r.ResponseID), len(r.ResponseModel), len(r.RequestModel), len(r.Provider), len(r.TargetURL)) > 256 {
						t.Error("a bound does not hold")
					}
				}
			}
		}
	})
}

// parse parses a body that is received over HTTP.
func parse(t testing.TB, e encoding, body []byte) (*collector.ExportTraceServiceRequest, error) {
	received, err := intake.Reader{Memory: admission.NewMemory(0), Limit: 1 << 30}.Read(
		httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, tracesPath, bytes.NewReader(body)))
	if err != nil {
		t.Fatal(err)
	}
	defer received.Release()
	return e.parse(t.Context(), &received)
}

// TestDeepValues: nesting costs no stack.
func TestDeepValues(t *testing.T) {
	deep := `{"stringValue":"x"}`
	for range 80 {
		deep = `{"arrayValue":{"values":[` + deep + `]}}`
	}
	for _, body := range []string{
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.input.messages","value":` + deep + `}]}]}]}]}`,
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.input.messages","value":{"stringValue":"` + strings.Repeat("[", 5<<20) + `"}}]}]}]}]}`,
	} {
		request, err := parse(t, jsonText, []byte(body))
		if err != nil {
			t.Fatalf("%.100s", err)
		}
		c, _ := newCall(request.ResourceSpans[0].ScopeSpans[0].Spans[0], nil, new(catalog.Catalog))
		if c == nil {
			t.Fatal("no call")
		}
		c.content(new(storage.Record))
	}
}

// TestIDsInJSON: all ids are hexadecimal there, also the parent's, by which two spans are known to be of one call.
func TestIDsInJSON(t *testing.T) {
	const trace, span, parent = "5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174", "eee19b7ec3c1b173"
	request, err := parse(t, jsonText, []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"`+trace+`","spanId":"`+span+`","parentSpanId":"`+parent+`"},{"spanId":"`+span+`"}]}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	spans := request.ResourceSpans[0].ScopeSpans[0].Spans
	if got := fmt.Sprintf("%x %x %x", spans[0].TraceId, spans[0].SpanId, spans[0].ParentSpanId); got != trace+" "+span+" "+parent {
		t.Errorf("the ids are %s", got)
	}
	if len(spans[1].ParentSpanId) > 0 {
		t.Errorf("a span without a parent has %x", spans[1].ParentSpanId)
	}
}

func testHeaders(t testing.TB) *control.Headers {
	t.Helper()
	app := &llmapp.App{
		HeaderPrefixes: []string{"Helicone"},
		Stores:         map[string]*stores.Config{"default": {StorageRaw: []byte(`{"backend":"sqlite","path":"` + t.TempDir() + `/weir.db"}`)}},
	}
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	t.Cleanup(cancel)
	if err := app.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	return app.Headers()
}

// TestTimesOfSpans: a time in another unit, or one that has not come, is no time.
func TestTimesOfSpans(t *testing.T) {
	now := time.Now()
	nanos := func(d time.Duration) uint64 { return uint64(now.Add(d).UnixNano()) }
	for name, c := range map[string]struct {
		start, end uint64
		taken      bool
	}{
		"now":               {nanos(-time.Second), nanos(0), true},
		"a clock that runs": {nanos(time.Hour), nanos(2 * time.Hour), true},
		"no end":            {nanos(0), 0, true},
		"no start":          {0, nanos(0), false},
		"seconds":           {nanos(0) / 1e9, nanos(0) / 1e9, false},
		"milliseconds":      {nanos(0) / 1e6, nanos(0) / 1e6, false},
		"microseconds":      {nanos(0) / 1e3, nanos(0) / 1e3, false},
		"the year 2540":     {17_987_616_000_000_000_000, 17_987_616_000_000_000_000, false},
		"the end of time":   {nanos(0), 1<<64 - 1, false},
	} {
		s := &tracepb.Span{
			TraceId: bytes.Repeat([]byte{1}, 16), SpanId: bytes.Repeat([]byte{1}, 8),
			StartTimeUnixNano: c.start, EndTimeUnixNano: c.end,
		}
		if err := check(s, now); (err == nil) != c.taken {
			t.Errorf("%s: %v", name, err)
		}
	}
}
