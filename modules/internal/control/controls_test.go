package control

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

func TestControlHeaders(t *testing.T) {
	for _, c := range []struct {
		name     string
		header   http.Header
		want     storage.Record
		controls Controls
		warnings []string
	}{
		{name: "none", header: http.Header{"Authorization": {"Bearer x"}}},
		{
			name: "every text",
			header: http.Header{
				"Service-User-Id": {"u"}, "Service-Session-Id": {"s"}, "Service-Session-Name": {"n"}, "Service-Session-Path": {"/a/b"},
				"Service-Prompt-Id": {"p"}, "Service-Prompt-Version": {"v"}, "Service-Model-Override": {"m"},
				"Service-Node-Id": {"no"}, "Service-Job-Id": {"j"}, "Service-Experiment-Id": {"e"}, "Service-Cache-Enabled": {"TRUE"},
				"Service-Request-Id": {"r"}, "Service-Auth": {"bearer key"},
			},
			want: storage.Record{
				UserID: "u", SessionID: "s", SessionName: "n", SessionPath: "/a/b", PromptID: "p", PromptVersion: "v",
				ModelOverride: "m", NodeID: "no", JobID: "j", ExperimentID: "e", CacheEnabled: true,
			},
			controls: Controls{ID: "r", Keyed: true, Secret: "key", Cache: Cache{Enabled: new(true)}},
		},
		{
			name: "the cache",
			header: http.Header{
				"Cache-Control": {"max-age=60"}, "Service-Cache-Control": {"max-age=5, s-maxage=99999999"}, "Service-Cache-Read": {"false"}, "Service-Cache-Save": {"True"},
				"Service-Cache-Seed": {"x"}, "Service-Cache-Bucket-Max-Size": {"20"}, "Service-Cache-Ignore-Keys": {"user, seed,model", "user"},
			},
			controls: Controls{Cache: Cache{
				Read: new(false), Save: new(true), Seed: "x", Buckets: 20, Ignore: []string{"seed", "user"}, MaxAge: new(365 * 24 * time.Hour), control: "max-age=5, s-maxage=99999999",
			}},
			warnings: []string{"Service-Cache-Ignore-Keys: model is not ignored: it decides what the answer is"},
		},
		{
			name:     "too many answers",
			header:   http.Header{"Service-Cache-Bucket-Max-Size": {"21"}},
			controls: Controls{Refused: plugins.Invalid("Service-Cache-Bucket-Max-Size", "Cache bucket size cannot be greater than 20.")},
		},
		{
			name: "properties and inputs",
			header: http.Header{
				"Service-Property-User-Tier": {"gold"}, "Service-Property-Usertype": {"x"},
				"Service-Properties": {`{"camelCase":"ä","n":1}`}, "Service-Prompt-Input-City": {"Bern"},
			},
			want:     storage.Record{Properties: map[string]string{"User-Tier": "gold", "userType": "x", "camelCase": "ä"}},
			controls: Controls{Inputs: map[string]string{"City": "Bern"}},
			warnings: []string{"Service-Properties: ignored a value that is no string"},
		},
		{
			name: "a session by properties",
			header: http.Header{
				"Service-Session-Id": {"s"}, "Service-Property-Service-Session-Id": {"x"}, "Service-Properties": {`{"service-session-name":"y"}`},
			},
			want: storage.Record{SessionID: "s"},
			warnings: []string{
				"Service-Properties: ignored, a session is named by the header Service-Session-Name",
				"Service-Property-Service-Session-Id: ignored, a session is named by the header Service-Session-Id",
			},
		},
		{
			name: "a property said twice",
			header: http.Header{
				"Service-Properties": {`{"Plan":"object","Team":"object"}`}, "Service-Property-Plan": {"header"},
				"Helicone-Property-Plan": {"theirs"}, "Helicone-Property-Team": {"theirs"},
			},
			want: storage.Record{Properties: map[string]string{"Plan": "header", "Team": "object"}},
		},
		{
			name:     "omit",
			header:   http.Header{"Service-Omit-Request": {"True"}, "Service-Omit-Response": {"false", "true"}},
			controls: Controls{OmitRequest: true, OmitResponse: true},
		},
		{name: "omit, in other words", header: http.Header{"Service-Omit-Request": {"yes"}, "Service-Omit-Response": {"1"}}, controls: Controls{OmitRequest: true, OmitResponse: true}},
		{name: "omit, as a list", header: http.Header{"Service-Omit-Request": {"true, true"}, "Service-Omit-Response": {"off,ON"}}, controls: Controls{OmitRequest: true, OmitResponse: true}},
		{name: "do not omit", header: http.Header{"Service-Omit-Request": {"no", "OFF", ""}, "Service-Omit-Response": {" 0 , False"}}},
		{name: "dry run, in other words", header: http.Header{"Service-Dry-Run": {"yes"}}, controls: Controls{DryRun: true}},
		{
			name:     "omit, in a word that nobody knows",
			header:   http.Header{"Service-Omit-Request": {"ture"}, "Service-Omit-Response": {"\xff"}},
			controls: Controls{OmitRequest: true, OmitResponse: true},
			warnings: []string{"Service-Omit-Request: on, but write true or false", "Service-Omit-Response: on, but write true or false"},
		},
		{
			name:     "of other headers, anything but true is off",
			header:   http.Header{"Service-Strict": {"1"}},
			warnings: []string{"Service-Strict: off, the only value that switches it on is true"},
		},
		{
			name:     "a second prefix",
			header:   http.Header{"Helicone-User-Id": {"theirs"}, "Service-User-Id": {"ours"}, "Helicone-Omit-Request": {"true"}, "Service-Omit-Request": {"false"}, "Helicone-Job-Id": {"j"}},
			want:     storage.Record{UserID: "ours", JobID: "j"},
			controls: Controls{OmitRequest: true},
		},
		{
			name:     "not UTF-8",
			header:   http.Header{"Service-User-Id": {"\xff"}},
			warnings: []string{"Service-User-Id: ignored, it is not UTF-8"},
		},
		{
			name:     "sent twice",
			header:   http.Header{"Service-User-Id": {"a", "b"}},
			want:     storage.Record{UserID: "a"},
			warnings: []string{"Service-User-Id: sent more than once, the first counts"},
		},
		{
			name:     "too long, cut between characters",
			header:   http.Header{"Service-User-Id": {"x" + strings.Repeat("ä", maxID)}},
			want:     storage.Record{UserID: "x" + strings.Repeat("ä", maxID/2-1)},
			warnings: []string{fmt.Sprintf("Service-User-Id: cut to %d bytes", maxID-1)},
		},
		{
			name:     "no object",
			header:   http.Header{"Service-Properties": {`["a"]`}},
			warnings: []string{"Service-Properties: ignored, it is no JSON object"},
		},
		{
			name:     "no name",
			header:   http.Header{"Service-Property-": {"x"}},
			warnings: []string{"Service-Property-: ignored, a name has 1 to 256 bytes"},
		},
		{
			name: "unknown",
			header: http.Header{
				"Helicone-Ratelimit-Policy": {"x"}, "Helicone-Retry-Enabled": {"true"}, "Helicone-Fallbacks": {"x"},
				"Helicone-Moderations-Enabled": {"true"}, "Helicone-Webhook-Enabled": {"true"},
				"Service-Propery-X": {"x"}, "Service-Omit-Requests": {"true"}, "Service-Sesion-Id": {"x"}, "Service-Promt-Input-My-City": {"x"},
			},
			controls: Controls{OmitRequest: true, OmitResponse: true, RateLimitPolicy: "x"}, // which Service-Omit-Requests fails closed to
			warnings: []string{
				"Helicone-Fallbacks: ignored, there is no such control header",
				"Helicone-Moderations-Enabled: ignored, there is no such control header",
				"Helicone-Retry-Enabled: ignored, there is no such control header",
				"Helicone-Webhook-Enabled: ignored, there is no such control header",
				"Service-Omit-Requests: ignored, there is no such control header; did you mean Service-Omit-Request?",
				"Service-Promt-Input-My-City: ignored, there is no such control header; did you mean Service-Prompt-Input-My-City?",
				"Service-Propery-X: ignored, there is no such control header; did you mean Service-Property-X?",
				"Service-Sesion-Id: ignored, there is no such control header; did you mean Service-Session-Id?",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			headers := testHeaders(t)
			var r storage.Record
			got := *Read(c.header, headers, &r)
			if !reflect.DeepEqual(r, c.want) {
				t.Errorf("record %+v", r)
			}
			if slices.Sort(got.Warnings); !slices.Equal(got.Warnings, c.warnings) {
				t.Errorf("warnings %q", got.Warnings)
			}
			if omits := got.OmitRequest || got.OmitResponse; (got.OmitHeader != "") != omits {
				t.Errorf("the header that omits content is %q", got.OmitHeader)
			}
			got.headers, got.record, got.Warnings, got.OmitHeader = nil, nil, nil, ""
			if !reflect.DeepEqual(got, c.controls) {
				t.Errorf("controls %+v", got)
			}
			for name := range c.header {
				if _, control := headers.Cut(name); control {
					t.Errorf("%s stays", name)
				}
			}
		})
	}
}

func TestPropertiesAreCounted(t *testing.T) {
	header := make(http.Header)
	for i := range MaxProperties + 5 {
		header.Set(fmt.Sprintf("Service-Property-P%03d", i), "x")
	}
	var r storage.Record
	c := Read(header, testHeaders(t), &r)
	if names := slices.Sorted(maps.Keys(r.Properties)); len(names) != MaxProperties || names[MaxProperties-1] != "P099" {
		t.Errorf("%d properties", len(r.Properties))
	}
	if !slices.Equal(c.Warnings, []string{"properties: kept the first 100"}) {
		t.Errorf("%q", c.Warnings)
	}
}

// testHeaders have a second prefix and a spelling.
func testHeaders(t testing.TB) *Headers {
	t.Helper()
	headers, err := NewHeaders([]string{"Helicone"}, []string{"userType"})
	if err != nil {
		t.Fatal(err)
	}
	return headers
}

func TestTraceParent(t *testing.T) {
	const trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for v, ok := range map[string]bool{
		"00-" + trace + "-" + span + "-01":      true,
		"cc-" + trace + "-" + span + "-01-more": true,
		"":                                      false,
		"ff-" + trace + "-" + span + "-01":      false,
		"00-" + strings.ToUpper(trace) + "-" + span + "-01":   false,
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01":  false,
		"00-" + trace + "-" + strings.Repeat("0", 16) + "-01": false,
		"00_" + trace + "-" + span + "-01":                    false,
	} {
		gotTrace, gotSpan := traceParent(v)
		if (gotTrace == trace && gotSpan == span) != ok || !ok && gotTrace+gotSpan != "" {
			t.Errorf("%s: %s %s", v, gotTrace, gotSpan)
		}
	}
}

func FuzzControls(f *testing.F) {
	f.Add("Service-Properties", `{"a":"b","c":[1]}`)
	f.Add("Service-Property-X", "\xffx")
	f.Add("Service-User-Id", strings.Repeat("ä", maxID))
	headers := testHeaders(f)
	f.Fuzz(func(t *testing.T, name, value string) {
		var r storage.Record
		Read(http.Header{http.CanonicalHeaderKey(name): {value}}, headers, &r)
		if len(r.UserID) > maxID || len(r.Properties) > MaxProperties {
			t.Error("a bound does not hold")
		}
		for name, v := range r.Properties {
			if len(name) > MaxName || len(v) > MaxValue {
				t.Error("a bound does not hold")
			}
		}
	})
}

// A property or an input of a prompt that is named like a credential is not kept, however it
// is sent.
func TestCredentialsAreNotKept(t *testing.T) {
	var r storage.Record
	c := Read(http.Header{
		"Service-Property-Token": {"canary"}, "Service-Property-Api-Key": {"canary"}, "Service-Property-Authorization": {"canary"},
		"Service-Properties": {`{"apiKey":"canary","team":"a"}`}, "Service-Prompt-Input-Api-Key": {"canary"}, "Service-Prompt-Input-Topic": {"x"},
	}, &Headers{Prefixes: []string{"Service-"}}, &r)
	if !maps.Equal(r.Properties, map[string]string{"team": "a"}) {
		t.Errorf("kept %v", r.Properties)
	}
	if !maps.Equal(c.Inputs, map[string]string{"Topic": "x"}) {
		t.Errorf("kept %v", c.Inputs)
	}
	if text := strings.Join(c.Warnings, "\n"); strings.Count(text, "named like a credential") != 5 || strings.Contains(text, "canary") {
		t.Errorf("the warnings are %q", text)
	}
}
