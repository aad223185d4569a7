package llmotlp_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"
)

// span is a call with some attributes, numbered.
func span(n int, attributes map[string]string) *tracepb.Span {
	s := &tracepb.Span{
		TraceId: []byte(fmt.Sprintf("trace %010d", n/10)), SpanId: []byte(fmt.Sprintf("s%07d", n)),
		StartTimeUnixNano: uint64(1_790_000_000_000_000_000 + n*1_000_000), EndTimeUnixNano: uint64(1_790_000_001_000_000_000 + n*1_000_000),
		Attributes: []*commonpb.KeyValue{
			{Key: "gen_ai.operation.name", Value: text("chat")},
			{Key: "gen_ai.provider.name", Value: text("openai")},
			{Key: "gen_ai.request.model", Value: text("gpt-4o")},
			{Key: "gen_ai.usage.input_tokens", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: 1000}}},
			{Key: "gen_ai.usage.output_tokens", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: 500}}},
		},
	}
	for key, value := range attributes {
		s.Attributes = append(s.Attributes, &commonpb.KeyValue{Key: key, Value: text(value)})
	}
	return s
}

func text(s string) *commonpb.AnyValue {
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: s}}
}

// export is a batch of one process.
func export(t testing.TB, spans ...*tracepb.Span) []byte {
	t.Helper()
	return exportOf(t, attrs{"service.instance.id": "627cc493-f310-47de-96bd-71410b7dec09"}, spans...)
}

// exportOf is a batch of a resource.
func exportOf(t testing.TB, resource attrs, spans ...*tracepb.Span) []byte {
	t.Helper()
	var scopes []*tracepb.ScopeSpans
	for _, s := range spans {
		scope := ""
		for _, a := range s.GetAttributes() {
			if a.Key == "otel.scope.name" { // as exporters write it whose format has no scopes
				scope = a.Value.GetStringValue()
			}
		}
		if n := len(scopes); n == 0 || scopes[n-1].Scope.Name != scope {
			scopes = append(scopes, &tracepb.ScopeSpans{Scope: &commonpb.InstrumentationScope{Name: scope}})
		}
		last := scopes[len(scopes)-1]
		last.Spans = append(last.Spans, s)
	}
	body, err := proto.Marshal(&collector.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource: &resourcepb.Resource{Attributes: reported(0, "", resource).Attributes}, ScopeSpans: scopes,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func zipped(t testing.TB, body []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(body)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var binary = []string{"Content-Type", "application/x-protobuf"}

// TestErasedSpans: a call that was erased does not come back when it is reported or imported again.
func TestErasedSpans(t *testing.T) {
	s := newSite(t, "")
	body := export(t, span(1, nil), span(2, nil), span(3, nil))
	s.send("root", body, binary...)
	before := s.records("root")
	for i, scope := range []storage.ErasureScope{storage.EraseRecord, storage.EraseIdentity} {
		id := uuid.MustParse(before[i].Get("request_id").Str)
		e := journal.Erasure{ID: uuid.New(), Org: before[i].Get("organization_id").Str, Scope: scope}
		if err := s.journal().Erase(e, []journal.Chosen{{ID: id}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, header := range [][]string{binary, append([]string{"Service-Replace", "true"}, binary...)} {
		response, _ := s.send("root", body, header...)
		if got := response.Header.Get("Service-Spans"); !strings.Contains(got, "recorded=0") || !strings.Contains(got, "ignored=2") {
			t.Errorf("%v: %s", header, got)
		}
	}
	var left []gjson.Result
	for deadline := time.Now().Add(10 * time.Second); len(left) != 2 || left[0].Get("trace_id").Type != gjson.Null; left = s.records("root") {
		if time.Now().After(deadline) {
			t.Fatalf("the records are %s", left)
		}
	}
}

// TestTwice: what a client sends again, in whatever encoding, is one record, and
// what became of it in the meantime stays.
func TestTwice(t *testing.T) {
	s := newSite(t, "")
	body := export(t, span(1, nil), span(2, nil))
	for _, send := range []func() (*http.Response, []byte){
		func() (*http.Response, []byte) { return s.send("root", body, binary...) },
		func() (*http.Response, []byte) { return s.send("root", body, binary...) },
		func() (*http.Response, []byte) {
			s.records("root") // waits until the backend has them
			return s.send("root", zipped(t, body), append(binary, "Content-Encoding", "gzip")...)
		},
	} {
		response, answer := send()
		if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "application/x-protobuf" || len(answer) != 0 {
			t.Fatalf("%s %q", response.Status, answer)
		}
	}
	records := s.records("root")
	if len(records) != 2 {
		t.Fatalf("%d records", len(records))
	}
	if cost := records[0].Get("cost").Raw; cost != "0.0075" {
		t.Errorf("cost %s", cost)
	}
	// A batch with a span more makes a record more.
	s.send("root", export(t, span(2, nil), span(3, nil)), binary...)
	if records := s.records("root"); len(records) != 3 {
		t.Errorf("%d records", len(records))
	}
	// Another organisation's span of the same ids is its own.
	s.send("acme", body, binary...)
	if root, acme := s.records("root"), s.records("acme"); len(root) != 3 || len(acme) != 2 || acme[0].Get("organization_id").Str != "acme" {
		t.Errorf("%d and %d records", len(root), len(acme))
	}
}

func TestRefusals(t *testing.T) {
	s := newSite(t, "")
	good := export(t, span(1, nil))
	huge := make([]byte, 12*bound+1)
	for _, c := range []struct {
		name   string
		key    string
		body   []byte
		header []string
		status int
		want   string
	}{
		{name: "no key", body: good, status: 401, want: "missing_api_key"},
		{name: "unknown key", key: "nobody", body: good, status: 401, want: "invalid_api_key"},
		{name: "unknown key as a password", body: good, header: append(binary, "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("root:nobody"))), status: 401, want: "invalid_api_key"},
		{name: "key as a password", body: good, header: append(binary, "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("pk-lf:logger"))), status: 200},
		{name: "key of another region", key: "europe", body: good, status: 403, want: "wrong_region"},
		{name: "key without the scope", key: "reader", body: good, status: 403, want: "insufficient_scope"},
		{name: "key with the scope", key: "logger", body: good, status: 200},
		{name: "no protobuf", key: "root", body: []byte("\xff\xff\xff"), status: 400, want: "ExportTraceServiceRequest"},
		{name: "no JSON", key: "root", body: []byte("{"), header: []string{"Content-Type", "application/json"}, status: 400, want: "ExportTraceServiceRequest"},
		{name: "no gzip", key: "root", body: good, header: append(binary, "Content-Encoding", "gzip"), status: 400, want: "Content-Encoding"},
		{name: "gzip cut short", key: "root", body: zipped(t, good)[:30], header: append(binary, "Content-Encoding", "gzip"), status: 400, want: "Content-Encoding"},
		{name: "another coding", key: "root", body: good, header: append(binary, "Content-Encoding", "compress"), status: 415, want: "Content-Encoding"},
		{name: "another type", key: "root", body: good, header: []string{"Content-Type", "text/plain"}, status: 415, want: "Content-Type"},
		{name: "too long", key: "root", body: huge, status: 413, want: "max_request"},
		{name: "a bomb", key: "root", body: zipped(t, huge), header: append(binary, "Content-Encoding", "gzip"), status: 413, want: "max_request"},
		{name: "deep JSON", key: "root", body: []byte(strings.Repeat("[", 11*bound)), header: []string{"Content-Type", "application/json"}, status: 413},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.header == nil {
				c.header = binary
			}
			response, answer := s.send(c.key, c.body, c.header...)
			if response.StatusCode != c.status {
				t.Fatalf("%s %q", response.Status, answer)
			}
			if c.status == http.StatusOK {
				return
			}
			said := gjson.GetBytes(answer, "message").Str
			if response.Header.Get("Content-Type") == "application/x-protobuf" {
				failure := new(status.Status)
				if err := proto.Unmarshal(answer, failure); err != nil || failure.Code == 0 {
					t.Errorf("no google.rpc.Status: %q", answer)
				}
				said = failure.Message
			}
			if said == "" || !strings.Contains(said, c.want) {
				t.Errorf("%q", said)
			}
		})
	}
	if records := s.records("root"); len(records) != 1 {
		t.Errorf("%d records", len(records))
	}

	r, _ := http.NewRequest("GET", s.url+"/v1/traces", nil)
	if response, _ := s.do(r); response.StatusCode != http.StatusMethodNotAllowed || response.Header.Get("Allow") != "POST" {
		t.Errorf("GET: %s", response.Status)
	}
	r, _ = http.NewRequest("POST", s.url+"/v1/metrics", nil)
	if response, _ := s.do(r); response.StatusCode != http.StatusTeapot {
		t.Errorf("another path: %s", response.Status)
	}
}

// TestPartialSuccess: spans that cannot be kept are named, and keep no other
// from being kept.
func TestPartialSuccess(t *testing.T) {
	s := newSite(t, "")
	nameless, timeless := span(2, nil), span(3, nil)
	nameless.TraceId, timeless.StartTimeUnixNano = make([]byte, 16), 0
	noCall := &tracepb.Span{} // is not looked at any further
	response, answer := s.send("root", export(t, nameless, span(1, nil), timeless, noCall), binary...)
	got := new(collector.ExportTraceServiceResponse)
	if err := proto.Unmarshal(answer, got); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s %q", response.Status, answer)
	}
	if p := got.GetPartialSuccess(); p.GetRejectedSpans() != 2 || !strings.Contains(p.GetErrorMessage(), "trace_id") {
		t.Errorf("%v", p)
	}
	if records := s.records("root"); len(records) != 1 {
		t.Errorf("%d records", len(records))
	}
}

// TestFull: a journal that can take no more sends the batch back, and counts no
// loss.
func TestFull(t *testing.T) {
	s := newSite(t, `"max_journal": 100,`)
	response, answer := s.send("root", export(t, span(1, map[string]string{"padding": strings.Repeat("x", 200)})), binary...)
	if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" {
		t.Errorf("%s %q", response.Status, answer)
	}
	if lost := s.journal().Status().Lost; len(lost) != 0 {
		t.Errorf("lost %v", lost)
	}
}

// TestOmission: what must not be kept is in no file.
func TestOmission(t *testing.T) {
	s := newSite(t, "")
	const association = "traceloop.association.properties."
	said := map[string]string{
		"gen_ai.input.messages":               `[{"role":"user","parts":[{"type":"text","content":"canary-in"}]}]`,
		"gen_ai.output.messages":              `[{"role":"assistant","parts":[{"type":"text","content":"canary-out"}]}]`,
		"llm.headers":                         `{"Authorization": "canary-key", "Helicone-Omit-Request": "true"}`,
		association + "Service-Omit-Response": "true", association + "Service-Auth": "canary-auth",
		"traceloop.prompt.template_variables": `{"x":"canary-input"}`,
	}
	if response, answer := s.send("root", export(t, span(1, said)), binary...); response.StatusCode != http.StatusOK {
		t.Fatalf("%s %q", response.Status, answer)
	}
	record := s.records("root")[0]
	if !record.Get("request_omitted").Bool() || !record.Get("response_omitted").Bool() || record.Get("request_body").Type != gjson.Null || record.Get("response_body").Type != gjson.Null {
		t.Errorf("%s", record.Raw)
	}
	err := filepath.WalkDir(s.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte("canary")) {
			t.Errorf("%s has a canary", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestWarnings: control headers that cannot be followed are reported, each once.
func TestWarnings(t *testing.T) {
	s := newSite(t, "")
	wrong := map[string]string{"traceloop.association.properties.Service-Omit-Request": "maybe"}
	response, _ := s.send("root", export(t, span(1, wrong), span(2, wrong)), binary...)
	if got := response.Header["Service-Warnings"]; len(got) != 1 || !strings.HasPrefix(got[0], "Service-Omit-Request: on") {
		t.Errorf("%q", got)
	}
}

// TestTheHeaderOfABatchOmits: control headers of the POST that omit hold for all of
// its spans, and others are not ignored in silence.
func TestTheHeaderOfABatchOmits(t *testing.T) {
	s := newSite(t, "")
	said := map[string]string{
		"gen_ai.input.messages":               `[{"role":"user","parts":[{"type":"text","content":"hi"}]}]`,
		"gen_ai.output.messages":              `[{"role":"assistant","parts":[{"type":"text","content":"ho"}]}]`,
		"traceloop.prompt.template_variables": `{"x":"y"}`,
	}
	header := append([]string{"Service-Omit-Request", "yes", "Helicone-Omit-Response", "true", "Service-User-Id", "ada"}, binary...)
	response, _ := s.send("root", export(t, span(1, said), span(2, said)), header...)
	records := s.records("root")
	if len(records) != 2 {
		t.Fatalf("%d records", len(records))
	}
	for _, record := range records {
		for _, side := range []string{"request", "response"} {
			if !record.Get(side+"_omitted").Bool() || record.Get(side+"_body").Type != gjson.Null {
				t.Errorf("the %s is not omitted: %s", side, record.Raw)
			}
		}
	}
	if got := response.Header["Service-Warnings"]; len(got) != 1 || !strings.HasPrefix(got[0], "Service-User-Id: ignored") {
		t.Errorf("%q", got)
	}
}

// TestPropertiesNamedLikeCredentials: an application may put its configuration
// beside its calls.
func TestPropertiesNamedLikeCredentials(t *testing.T) {
	s := newSite(t, "")
	said := map[string]string{
		"traceloop.association.properties.api_key": "canary-1", "traceloop.association.properties.userPassword": "canary-2",
		"metadata": `{"access_token":"canary-3","team":"blue"}`,
	}
	response, _ := s.send("root", export(t, span(1, said)), binary...)
	record := s.records("root")[0]
	if strings.Contains(record.Raw, "canary") || record.Get("properties.team").Str != "blue" {
		t.Errorf("%s", record.Raw)
	}
	if got := response.Header["Service-Warnings"]; len(got) != 2 || strings.Contains(strings.Join(got, ""), "canary") {
		t.Errorf("%q", got)
	}
}

// TestHugeAttributes: what is no content is bounded, so that no span is too large
// for the journal, and its batch sent again for ever.
func TestHugeAttributes(t *testing.T) {
	s := newSite(t, "")
	huge := strings.Repeat("x", 9<<20)
	for n, key := range []string{"gen_ai.request.model", "gen_ai.provider.name", "gen_ai.openai.api_base", "gen_ai.response.model"} {
		call := span(n, nil)
		call.Attributes = append([]*commonpb.KeyValue{{Key: key, Value: text("http://a/" + huge)}}, call.Attributes...)
		if response, answer := s.send("root", export(t, call), binary...); response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %q", key, response.Status, answer)
		}
		if record := s.records("root")[n]; len(record.Raw) > 10_000 {
			t.Errorf("%s: the record has %d bytes", key, len(record.Raw))
		}
	}
}

// TestAnyPlaceOmits: content is omitted when any place says so, however it says
// it.
func TestAnyPlaceOmits(t *testing.T) {
	s := newSite(t, "")
	for n, said := range []map[string]string{
		{"llm.headers": `{"Service-Omit-Request": "true"}`, "traceloop.association.properties.Service-Omit-Request": "false"},
		{"llm.headers": `{"Service-Properties": "{\"a\":\"b\"}", "Helicone-Omit-Request" : "true"}`},
		{"llm.headers": `{'Service-Properties': '{"a":"b"}', 'helicone-omit-request': 'true'}`},
		{"llm.headers": `{"User-Agent": "x"}`, "gen_ai.headers": `{"Service-Omit-Request": "true"}`},
	} {
		said["gen_ai.input.messages"] = `[{"role":"user","parts":[{"type":"text","content":"hi"}]}]`
		s.send("root", export(t, span(n, said)), binary...)
		record := s.records("root")[n]
		if !record.Get("request_omitted").Bool() || record.Get("request_body").Type != gjson.Null {
			t.Errorf("%v: %s", said, record.Raw)
		}
		if strings.Contains(said["llm.headers"], "Properties") && record.Get("properties.a").Str != "b" {
			t.Errorf("%v: %s", said, record.Get("properties"))
		}
	}
}

// Spans that report a conversation one after the other are linked as calls through the
// proxy are, and what the provider's cache missed is explained.
func TestSpansOfAConversationAreLinked(t *testing.T) {
	s := newSite(t, "")
	question := `[{"role":"system","content":"You are brief."},{"role":"user","content":"What colour is the sky?"}]`
	later := `[{"role":"system","content":"You are brief."},{"role":"user","content":"What colour is the sky?"},{"role":"assistant","content":"Blue."},{"role":"user","content":"And the sea?"}]`
	for i, c := range []struct{ messages, tools string }{{question, "[]"}, {later, `[{"type":"function","function":{"name":"look"}}]`}} {
		start := uint64(1_790_000_000_000_000_000 + 10_000_000_000*i)
		var attributes []*commonpb.KeyValue
		for key, value := range map[string]string{
			"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5-mini", "url.path": "/v1/chat/completions",
			"weir.request.body":  `{"model":"gpt-5-mini","messages":` + c.messages + `,"tools":` + c.tools + `}`,
			"weir.response.body": `{"object":"chat.completion","model":"gpt-5-mini","choices":[{"message":{"role":"assistant","content":"Blue."}}],"usage":{"prompt_tokens":5000,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":0}}}`,
		} {
			attributes = append(attributes, &commonpb.KeyValue{Key: key, Value: text(value)})
		}
		s.send("root", export(t, &tracepb.Span{
			TraceId: bytes.Repeat([]byte{7}, 16), SpanId: bytes.Repeat([]byte{byte(i + 1)}, 8), StartTimeUnixNano: start, EndTimeUnixNano: start + 1_000_000_000, Attributes: attributes,
		}), binary...)
	}
	records := s.records("root")
	if len(records) != 2 {
		t.Fatalf("%d records", len(records))
	}
	first, second := records[0], records[1]
	if second.Get("parent_request_id").Str != first.Get("request_id").Str || second.Get("turn").Int() != 2 || second.Get("cache_miss_reason").Str != "tools_changed" || second.Get("cache_loss").Float() <= 0 {
		t.Errorf("the second span is the record %s", second)
	}
}
