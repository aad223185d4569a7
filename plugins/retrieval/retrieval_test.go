package retrieval_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/bedrock"
	"github.com/weirhq/weir/plugins/chat"
	"github.com/weirhq/weir/plugins/cohere"
	"github.com/weirhq/weir/plugins/gemini"
	"github.com/weirhq/weir/plugins/retrieval"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/plugins/vertex"
)

// request is what a client asks of a vendor's model.
type request struct {
	api   translate.EndpointTranslator
	model string
	d     plugins.Dialect
	body  string
}

func (r request) translate(t *testing.T) (*translate.EndpointCall, error) {
	t.Helper()
	body, ok := plugins.ParseObject([]byte(r.body))
	if !ok {
		t.Fatalf("no object: %s", r.body)
	}
	return r.api.TranslateEndpoint(t.Context(), r.d, body, translate.Target{Model: r.model, BaseURL: "https://vendor.example", Key: "key"})
}

const (
	embeddings = plugins.Embeddings
	rerank     = plugins.Rerank
)

var (
	voyage  = retrieval.For("voyage")
	jina    = retrieval.For("jina")
	mistral = chat.For("mistral")
	google  = vertex.Provider{Project: "p", Location: "l"}
	amazon  = new(bedrock.Provider)
)

// Each vendor gets its own format, and the client gets the answer in its own.
func TestVendors(t *testing.T) {
	for name, c := range map[string]struct {
		request
		sent    []string // "<path> <body>"
		answers []string
		want    string
		warning string
	}{
		"voyage": {
			request: request{voyage, "voyage-4", embeddings, `{"model":"x","input":["a","b"],"dimensions":256,"input_type":"search_query","truncate":"END","user":"u","encoding_format":"base64"}`},
			sent:    []string{`/embeddings {"input":["a","b"],"input_type":"query","model":"voyage-4","output_dimension":256,"truncation":true}`},
			answers: []string{`{"object":"list","data":[{"embedding":[1,2],"index":0},{"embedding":[3,4],"index":1}],"model":"voyage-4","usage":{"total_tokens":7}}`},
			want:    `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1,2]},{"object":"embedding","index":1,"embedding":[3,4]}],"model":"voyage-4","usage":{"prompt_tokens":7,"total_tokens":7}}`,
			warning: "user: not supported by the provider, left out",
		},
		"voyage's rerank": {
			request: request{voyage, "rerank-2.5", rerank, `{"model":"x","query":"q","documents":["a",{"text":"b"}],"top_n":1,"return_documents":true,"max_tokens_per_doc":9}`},
			sent:    []string{`/rerank {"documents":["a","b"],"model":"rerank-2.5","query":"q","return_documents":false,"top_k":1}`},
			answers: []string{`{"object":"list","data":[{"relevance_score":0.5,"index":1}],"usage":{"total_tokens":26}}`},
			want:    `{"results":[{"index":1,"relevance_score":0.5,"document":{"text":"b"}}],"meta":{"api_version":{"version":"2"},"tokens":{"input_tokens":26}}}`,
			warning: "max_tokens_per_doc: not supported by the provider, left out",
		},
		"jina": {
			request: request{jina, "jina-embeddings-v3", embeddings, `{"model":"x","input":"a","dimensions":64,"input_type":"document","truncate":false}`},
			sent:    []string{`/embeddings {"dimensions":64,"input":["a"],"model":"jina-embeddings-v3","task":"retrieval.passage","truncate":false}`},
			answers: []string{`{"data":[{"embedding":[1],"index":0}],"usage":{"total_tokens":2,"prompt_tokens":2}}`},
			want:    `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]}],"model":"jina-embeddings-v3","usage":{"prompt_tokens":2,"total_tokens":2}}`,
		},
		"jina's rerank": {
			request: request{jina, "jina-reranker-v3", rerank, `{"model":"x","query":"q","documents":["a","b"],"top_n":1}`},
			sent:    []string{`/rerank {"documents":["a","b"],"model":"jina-reranker-v3","query":"q","return_documents":false,"top_n":1}`},
			answers: []string{`{"results":[{"index":0,"relevance_score":0.25}],"usage":{"total_tokens":5}}`},
			want:    `{"results":[{"index":0,"relevance_score":0.25}],"meta":{"api_version":{"version":"2"},"tokens":{"input_tokens":5}}}`,
		},
		"mistral": {
			request: request{mistral, "codestral-embed", embeddings, `{"model":"x","input":"a","dimensions":512,"user":"u"}`},
			sent:    []string{`/embeddings {"input":["a"],"model":"codestral-embed","output_dimension":512}`},
			answers: []string{`{"id":"e","data":[{"embedding":[1],"index":0}],"usage":{"prompt_tokens":3,"total_tokens":3}}`},
			want:    `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]}],"model":"codestral-embed","usage":{"prompt_tokens":3,"total_tokens":3}}`,
			warning: "user: not supported by the provider, left out",
		},
		"cohere": {
			request: request{cohere.Provider{}, "embed-v4.0", embeddings, `{"model":"x","input":["a"],"dimensions":256,"truncate":"start"}`},
			sent:    []string{`/v2/embed {"embedding_types":["float"],"input_type":"search_document","model":"embed-v4.0","output_dimension":256,"texts":["a"],"truncate":"START"}`},
			answers: []string{`{"id":"e","embeddings":{"float":[[1]]},"meta":{"billed_units":{"input_tokens":2}}}`},
			want:    `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]}],"model":"embed-v4.0","usage":{"prompt_tokens":2,"total_tokens":2}}`,
		},
		"gemini": {
			request: request{gemini.Provider{}, "gemini-embedding-001", embeddings, `{"model":"x","input":["a","b"],"dimensions":256,"input_type":"query"}`},
			sent: []string{`/v1beta/models/gemini-embedding-001:batchEmbedContents {"requests":[` +
				`{"model":"models/gemini-embedding-001","content":{"parts":[{"text":"a"}]},"taskType":"RETRIEVAL_QUERY","outputDimensionality":256},` +
				`{"model":"models/gemini-embedding-001","content":{"parts":[{"text":"b"}]},"taskType":"RETRIEVAL_QUERY","outputDimensionality":256}]}`},
			answers: []string{`{"embeddings":[{"values":[1]},{"values":[2]}],"usageMetadata":{"promptTokenCount":4}}`},
			want:    `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]},{"object":"embedding","index":1,"embedding":[2]}],"model":"gemini-embedding-001","usage":{"prompt_tokens":4,"total_tokens":4}}`,
		},
		"titan, a text a request": {
			request: request{amazon, "amazon.titan-embed-text-v2:0", embeddings, `{"model":"x","input":["a","b"],"dimensions":256}`},
			sent: []string{
				`/model/amazon.titan-embed-text-v2%3A0/invoke {"inputText":"a","dimensions":256}`,
				`/model/amazon.titan-embed-text-v2%3A0/invoke {"inputText":"b","dimensions":256}`,
			},
			answers: []string{`{"embedding":[1],"inputTextTokenCount":2}`, `{"embedding":[2],"inputTextTokenCount":3}`},
			want:    `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]},{"object":"embedding","index":1,"embedding":[2]}],"model":"amazon.titan-embed-text-v2:0","usage":{"prompt_tokens":5,"total_tokens":5}}`,
		},
		"cohere at bedrock, which counts in a header": {
			request: request{amazon, "cohere.embed-english-v3", embeddings, `{"model":"x","input":["a"],"input_type":"query"}`},
			sent:    []string{`/model/cohere.embed-english-v3/invoke {"embedding_types":["float"],"input_type":"search_query","texts":["a"]}`},
			answers: []string{`{"embeddings":{"float":[[1]]}}`},
			want:    `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]}],"model":"cohere.embed-english-v3","usage":{"prompt_tokens":11,"total_tokens":11}}`,
		},
		"cohere's rerank at bedrock": {
			request: request{amazon, "cohere.rerank-v3-5:0", rerank, `{"model":"x","query":"q","documents":["a"]}`},
			sent:    []string{`/model/cohere.rerank-v3-5%3A0/invoke {"query":"q","documents":["a"],"api_version":2}`},
			answers: []string{`{"results":[{"index":0,"relevance_score":1e-3}]}`},
			want:    `{"results":[{"index":0,"relevance_score":1e-3}],"meta":{"api_version":{"version":"2"}}}`,
		},
		"amazon's rerank": {
			request: request{amazon, "amazon.rerank-v1:0", rerank, `{"model":"x","query":"q","documents":["a"],"top_n":1}`},
			sent:    []string{`/model/amazon.rerank-v1%3A0/invoke {"query":"q","documents":["a"],"top_n":1}`},
			answers: []string{`{"results":[]}`},
			want:    `{"results":[],"meta":{"api_version":{"version":"2"}}}`,
		},
		"vertex": {
			request: request{google, "text-embedding-005", embeddings, `{"model":"x","input":["a","b"],"input_type":"clustering","truncation":true}`},
			sent:    []string{`/v1/projects/p/locations/l/publishers/google/models/text-embedding-005:predict {"instances":[{"content":"a","task_type":"CLUSTERING"},{"content":"b","task_type":"CLUSTERING"}],"parameters":{"autoTruncate":true}}`},
			answers: []string{`{"predictions":[{"embeddings":{"values":[1],"statistics":{"token_count":2}}},{"embeddings":{"values":[2],"statistics":{"token_count":3}}}]}`},
			want:    `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]},{"object":"embedding","index":1,"embedding":[2]}],"model":"text-embedding-005","usage":{"prompt_tokens":5,"total_tokens":5}}`,
		},
		"vertex's gemini, a text a request": {
			request: request{google, "gemini-embedding-001", embeddings, `{"model":"x","input":["a","b"],"dimensions":768}`},
			sent: []string{
				`/v1/projects/p/locations/l/publishers/google/models/gemini-embedding-001:predict {"instances":[{"content":"a"}],"parameters":{"outputDimensionality":768}}`,
				`/v1/projects/p/locations/l/publishers/google/models/gemini-embedding-001:predict {"instances":[{"content":"b"}],"parameters":{"outputDimensionality":768}}`,
			},
			answers: []string{`{"predictions":[{"embeddings":{"values":[1]}}]}`, `{"predictions":[{"embeddings":{"values":[2]}}]}`},
			want:    `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]},{"object":"embedding","index":1,"embedding":[2]}],"model":"gemini-embedding-001"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			call, err := c.translate(t)
			if err != nil {
				t.Fatal(err)
			}
			if call.Count != len(c.sent) {
				t.Fatalf("%d requests", call.Count)
			}
			var answers []translate.EndpointAnswer
			for i := range c.sent {
				r, err := call.Request(i)
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(r.Body)
				if got := r.URL.EscapedPath() + " " + string(body); got != c.sent[i] || r.Header.Get("Authorization") != "Bearer key" && r.Header.Get("X-Goog-Api-Key") != "key" {
					t.Errorf("sent %s\nwant %s", got, c.sent[i])
				}
				answers = append(answers, translate.EndpointAnswer{Header: http.Header{"X-Amzn-Bedrock-Input-Token-Count": {"11"}}, Body: []byte(c.answers[i])})
			}
			if got := string(call.Read(answers)); got != c.want {
				t.Errorf("read %s\nwant %s", got, c.want)
			}
			if got := strings.Join(call.Warnings, " "); got != c.warning {
				t.Errorf("warned of %q", got)
			}
		})
	}
}

// What a vendor cannot do is refused by the name of the field, or left to another lane.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		request
		param string // "" for what the target lacks
	}{
		"tokens":                      {request{voyage, "m", embeddings, `{"input":[[1,2]]}`}, "input"},
		"too much input":              {request{voyage, "m", embeddings, `{"input":["a"` + strings.Repeat(`,"a"`, 2048) + `]}`}, "input"},
		"no input":                    {request{voyage, "m", embeddings, `{"input":[]}`}, "input"},
		"no dimension":                {request{jina, "m", embeddings, `{"input":"a","dimensions":0}`}, "dimensions"},
		"a fraction":                  {request{jina, "m", embeddings, `{"input":"a","dimensions":1.5}`}, "dimensions"},
		"an odd format":               {request{jina, "m", embeddings, `{"input":"a","encoding_format":"int8"}`}, "encoding_format"},
		"an odd type":                 {request{jina, "m", embeddings, `{"input":"a","input_type":"image"}`}, "input_type"},
		"a type that voyage lacks":    {request{voyage, "m", embeddings, `{"input":"a","input_type":"clustering"}`}, "input_type"},
		"a type that mistral lacks":   {request{mistral, "m", embeddings, `{"input":"a","input_type":"query"}`}, "input_type"},
		"an odd truncation":           {request{voyage, "m", embeddings, `{"input":"a","truncate":"MIDDLE"}`}, "truncate"},
		"a truncation voyage lacks":   {request{voyage, "m", embeddings, `{"input":"a","truncate":"START"}`}, "truncate"},
		"a truncation mistral lacks":  {request{mistral, "m", embeddings, `{"input":"a","truncate":"END"}`}, "truncate"},
		"a truncation gemini lacks":   {request{gemini.Provider{}, "m", embeddings, `{"input":"a","truncate":"END"}`}, "truncate"},
		"what nobody knows":           {request{voyage, "m", embeddings, `{"input":"a","late_chunking":true}`}, "late_chunking"},
		"dimensions of the old titan": {request{amazon, "amazon.titan-embed-text-v1", embeddings, `{"input":"a","dimensions":256}`}, "dimensions"},
		"no query":                    {request{voyage, "m", rerank, `{"documents":["a"]}`}, "query"},
		"no documents":                {request{voyage, "m", rerank, `{"query":"q"}`}, "documents"},
		"documents that are none":     {request{voyage, "m", rerank, `{"query":"q","documents":[{"title":"a"}]}`}, "documents"},
		"fields of documents":         {request{voyage, "m", rerank, `{"query":"q","documents":["a"],"rank_fields":["title"]}`}, "rank_fields"},

		"mistral ranks nothing":              {request{mistral, "m", rerank, `{}`}, ""},
		"claude embeds nothing":              {request{amazon, "anthropic.claude-3-haiku", embeddings, `{}`}, ""},
		"vertex serves others' models as is": {request{google, "meta/llama", embeddings, `{}`}, ""},
		"gemini has OpenAI's format":         {request{gemini.Provider{}, "gemini-embedding-001", embeddings, `{"input":"a","dimensions":256}`}, ""},
		"cohere has OpenAI's format":         {request{cohere.Provider{}, "embed-v4.0", embeddings, `{"input":"a"}`}, ""},
		"voyage has no moderation":           {request{voyage, "m", plugins.Moderations, `{}`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.translate(t)
			refused, _ := errors.AsType[*plugins.Error](err)
			switch {
			case c.param == "" && !errors.Is(err, errors.ErrUnsupported):
				t.Errorf("the error is %v", err)
			case c.param != "" && (refused == nil || refused.Param != c.param || refused.Status != http.StatusBadRequest):
				t.Errorf("the error is %+v", err)
			}
		})
	}
}

// An answer that has not what was asked for is none.
func TestAnswersThatAreNone(t *testing.T) {
	embed, err := request{voyage, "m", embeddings, `{"input":["a","b"]}`}.translate(t)
	if err != nil {
		t.Fatal(err)
	}
	rank, err := request{voyage, "m", rerank, `{"query":"q","documents":["a"]}`}.translate(t)
	if err != nil {
		t.Fatal(err)
	}
	for call, answers := range map[*translate.EndpointCall][]string{
		embed: {`{}`, `[]`, `{"data":[{"embedding":[1]}]}`, `{"data":[{"embedding":[1]},{"embedding":null}]}`, `{"data":[{"embedding":[1],"index":1},{"embedding":[2],"index":0}]}`},
		rank:  {`{}`, `{"data":{}}`, `{"data":[{"index":1,"relevance_score":1}]}`, `{"data":[{"index":-1,"relevance_score":1}]}`, `{"data":[{"index":0}]}`, `{"data":[{"index":"0","relevance_score":1}]}`},
	} {
		for _, answer := range answers {
			if got := call.Read([]translate.EndpointAnswer{{Body: []byte(answer)}}); got != nil {
				t.Errorf("%s becomes %s", answer, got)
			}
		}
	}
}
