package recording

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// Results as the three APIs have them, of a call that succeeds and of one that does not.
const (
	openAIResults = `{"id":"batch_req_1","custom_id":"a","response":{"status_code":200,"request_id":"r1","body":{"id":"chatcmpl-1","object":"chat.completion","created":1795000000,"model":"gpt-4o-mini-2024-07-18","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100},"service_tier":"default"}},"error":null}` + "\n" +
		`{"id":"batch_req_2","custom_id":"b","response":{"status_code":400,"request_id":"r2","body":{"error":{"message":"no","type":"invalid_request_error","code":null}}},"error":null}` + "\n" +
		`{"id":"batch_req_3","custom_id":"c","response":null,"error":{"code":"batch_expired","message":"late"}}` + "\n" +
		`{"id":"batch_req_4","custom_id":"d","response":{"status_code":200,"request_id":"r4","body":{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1]}],"model":"text-embedding-3-small","usage":{"prompt_tokens":1000,"total_tokens":1000}}},"error":null}`
	anthropicResults = `{"custom_id":"a","result":{"type":"succeeded","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":900,"cache_read_input_tokens":100,"cache_creation_input_tokens":0,"output_tokens":100,"service_tier":"batch"}}}}` + "\n" +
		`{"custom_id":"b","result":{"type":"errored","error":{"type":"error","error":{"type":"invalid_request_error","message":"no"}}}}` + "\n" +
		`{"custom_id":"c","result":{"type":"expired"}}` + "\n"
	geminiResults = `{"key":"a","response":{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1000,"candidatesTokenCount":100,"totalTokenCount":1100},"modelVersion":"gemini-2.5-flash"}}` + "\n" +
		`{"key":"b","error":{"code":3,"status":"INVALID_ARGUMENT","message":"no"}}` + "\n"
	geminiInlined = `{"name":"batches/x","metadata":{"state":"}[\"","output":{"inlinedResponses":{"inlinedResponses":[]}}},"done":true,"response":{"inlinedResponses":{"inlinedResponses":[` +
		`{"response":{"candidates":[{"content":{"parts":[{"text":"}]"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1000,"candidatesTokenCount":100,"totalTokenCount":1100},"modelVersion":"gemini-2.5-flash"},"metadata":{"key":"a"}},` +
		`{"error":{"code":3,"message":"no"}}]}}}`
)

// download has a client download results, in chunks of that many bytes.
func download(x *Exchange, provider, path, body string, chunk int) {
	of, _ := observe.ResultsOf(path)
	x.Record.Provider, x.Record.Path = provider, path
	rs := x.Results(of, 1<<20)
	for len(body) > 0 {
		n := min(chunk, len(body))
		rs.Write([]byte(body[:n]))
		body = body[n:]
	}
	rs.Close(true)
}

// Each call of a batch has one record, at the price of batches, however often and in
// which chunks its results are downloaded.
func TestResultsAreRecordedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		provider, path, body string
		costs                []string // in dollars, "" if unknown
		tokens               int64
		errors               string
	}{
		"OpenAI": {"openai", "/v1/files/file-1/content", openAIResults, []string{"0.000105", "0", "0", "0.00001"}, 2100, ",invalid_request_error,batch_expired,"},
		"Anthropic": {"anthropic", "/v1/messages/batches/msgbatch_1/results", anthropicResults,
			[]string{"0.002115", "0", "0"}, 1100, ",invalid_request_error,expired"},
		"Gemini":         {"gemini", "/download/v1beta/files/batch-1:download", geminiResults, []string{"0.000275", "0"}, 1100, ",INVALID_ARGUMENT"},
		"Gemini, inline": {"gemini", "/v1beta/batches/x", geminiInlined, []string{"0.000275", "0"}, 1100, ",3"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, chunk := range []int{1, 7, 1 << 20} {
				x, kept := begin(t)
				for range 3 {
					download(x, c.provider, c.path, c.body, chunk)
				}
				if len(kept.records) != len(c.costs) {
					t.Fatalf("by %d: %d records of %d calls", chunk, len(kept.records), len(c.costs))
				}
				var tokens int64
				var failures []string
				for i, r := range kept.records {
					tokens += r.Usage.Total().N
					failures = append(failures, r.ErrorType)
					if got := string(r.Cost.AppendJSON(nil)); r.Cost.Valid != (c.costs[i] != "") || r.Cost.Valid && got != c.costs[i] {
						t.Errorf("by %d: the call %d of %s cost %s, want %s", chunk, i, r.Model, got, c.costs[i])
					}
					if r.EndState != storage.Complete || r.Org != x.Record.Org || r.Latency.Valid {
						t.Errorf("by %d: the record is %+v", chunk, r)
					}
				}
				if got := strings.Join(failures, ","); tokens != c.tokens || got != c.errors {
					t.Errorf("by %d: %d tokens, the errors %s", chunk, tokens, got)
				}
			}
		})
	}
}

// The records of a batch's calls are those of who made the batch, and keep what both that
// call and the download allow. Without a time of their own they have that of the batch.
func TestResultsBelongToTheBatch(t *testing.T) {
	x, kept := begin(t)
	made := x.Record
	made.Dialect, made.ResponseID, made.UserID, made.SessionID = plugins.Batches, "msgbatch_1", "ada", "night"
	made.Properties, made.ResponseOmitted = map[string]string{"Team": "search"}, true
	made.CreatedAt -= 3_600_000
	kept.records = append(kept.records, made)
	x.Record.UserID = "downloader"
	download(x, "anthropic", "/v1/messages/batches/msgbatch_1/results", anthropicResults, 100)
	if !x.Record.ResponseOmitted {
		t.Error("the download may keep what the batch may not")
	}
	for _, r := range kept.records[1:] {
		if r.UserID != "ada" || r.SessionID != "night" || r.Properties["Team"] != "search" || !r.ResponseOmitted || r.CreatedAt != made.CreatedAt {
			t.Errorf("the record is %+v", r)
		}
	}
}

// Without a record of the batch, too, nodes make the same records of the calls without a
// time, whenever on a day they download them.
func TestNodesMakeTheSameRecordsOfResults(t *testing.T) {
	for _, c := range []struct{ provider, path, body string }{
		{"openai", "/v1/files/file-1/content", openAIResults}, {"anthropic", "/v1/messages/batches/msgbatch_1/results", anthropicResults},
	} {
		x, one := begin(t)
		y, other := begin(t)
		x.Record.CreatedAt = storage.Millis(time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC))
		y.Record.CreatedAt = storage.Millis(time.Date(2026, 11, 23, 23, 59, 59, 999e6, time.UTC))
		download(x, c.provider, c.path, c.body, 1000)
		download(y, c.provider, c.path, c.body, 1000)
		for i, r := range one.records {
			if s := other.records[i]; r.ID != s.ID || r.CreatedAt != s.CreatedAt {
				t.Errorf("%s: the call %d is %s at %v and %s at %v", c.provider, i, r.ID, r.CreatedAt.Time(), s.ID, s.CreatedAt.Time())
			}
		}
		if len(one.records) < 3 || len(other.records) != len(one.records) {
			t.Errorf("%s: %d and %d records", c.provider, len(one.records), len(other.records))
		}
	}
}

// A backend that cannot tell what it has keeps no call from being recorded: the record is
// the same, and replaces the one that may be there.
func TestResultsWithoutTheBackend(t *testing.T) {
	x, kept := begin(t)
	kept.unknown = errors.New("down")
	download(x, "anthropic", "/v1/messages/batches/msgbatch_1/results", anthropicResults, 100)
	if len(kept.records) != 3 {
		t.Errorf("%d records", len(kept.records))
	}
}

// What is no result of a batch makes no record.
func TestFilesThatAreNoResults(t *testing.T) {
	for _, body := range []string{
		"", "\n\n", "%PDF-1.4\n" + openAIResults, `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{}}` + "\n" + openAIResults,
		`{"messages":[]}` + "\n" + openAIResults,
	} {
		x, kept := begin(t)
		download(x, "openai", "/v1/files/file-1/content", body, 1000)
		if len(kept.records) > 0 {
			t.Errorf("%.20q made %d records", body, len(kept.records))
		}
	}
}

// A result that is too long to be read is skipped, and those after it are recorded.
func TestResultsThatAreTooLong(t *testing.T) {
	x, kept := begin(t)
	lines := strings.SplitN(openAIResults, "\n", 2)
	of, _ := observe.ResultsOf("/v1/files/file-1/content")
	x.Record.Provider = "openai"
	rs := x.Results(of, 10)
	rs.Write([]byte(lines[0] + "\n"))
	long := []byte(strings.Repeat("x", 1<<20))
	for range maxResult>>20 + 1 {
		rs.Write(long)
	}
	if cap(rs.result) > 2*maxResult {
		t.Errorf("%d bytes are held", cap(rs.result))
	}
	rs.Write([]byte("\n" + lines[1]))
	rs.Close(true)
	if len(kept.records) != 4 {
		t.Errorf("%d records", len(kept.records))
	}
	if r := kept.records[0]; !r.ResponseTruncated {
		t.Error("a body over max_body is not said to be cut")
	}
}
