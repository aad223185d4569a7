package retrieval

import (
	"net/http"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// Rerank is a request of Cohere's Rerank, of both versions.
type Rerank struct {
	Query     string
	Documents []string
	// TopN is how many results there are at most, 0 for one of each document.
	TopN int64
	// ReturnDocuments asks for the documents beside their scores.
	ReturnDocuments bool
	// Warnings name what is left out.
	Warnings []string
}

// maxDocuments is how many documents a request has at most, as at Cohere.
const maxDocuments = 10_000

// ParseRerank reads a request. Its errors are *plugins.Error.
func ParseRerank(body *plugins.Object) (*Rerank, error) {
	r := new(Rerank)
	for _, m := range body.Members {
		if m.Value.Type == gjson.Null {
			continue
		}
		var err error
		switch m.Name {
		case "model":
		case "query":
			r.Query = m.Value.Str
		case "documents":
			r.Documents, err = documents(m.Value)
		case "top_n":
			r.TopN, err = positive(m)
		case "return_documents":
			r.ReturnDocuments = m.Value.Bool()
		case "max_tokens_per_doc", "max_chunks_per_doc", "priority":
			r.Warnings = append(r.Warnings, leftOut(m.Name))
		default:
			err = unknown(m.Name)
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case r.Query == "":
		return nil, plugins.Invalid("query", "'query' is a text.")
	case len(r.Documents) == 0 || len(r.Documents) > maxDocuments:
		return nil, plugins.Invalid("documents", "'documents' is a list of at most %d texts.", maxDocuments)
	}
	return r, nil
}

func documents(v gjson.Result) (all []string, err error) {
	for i, d := range v.Array() {
		if d.IsObject() { // Cohere's version 1
			d = d.Get("text")
		}
		if d.Type != gjson.String {
			return nil, plugins.Invalid("documents", "'documents[%d]' is neither a text nor an object with a 'text'.", i)
		}
		all = append(all, d.Str)
	}
	return all, nil
}

// Call returns the call that makes a request whose answer has a list of results at path. Each has
// `index` and `relevance_score`, as all vendors name them.
func (r *Rerank) Call(path string, request *http.Request) *translate.EndpointCall {
	return &translate.EndpointCall{Count: 1, Request: func(int) (*http.Request, error) { return request, nil }, Warnings: r.Warnings, Read: func(answers []translate.EndpointAnswer) []byte {
		return r.encode(gjson.ParseBytes(answers[0].Body), path)
	}}
}

// encode returns Cohere's object, nil if answer has no results.
func (r *Rerank) encode(answer gjson.Result, path string) []byte {
	list := answer.Get(path)
	if !list.IsArray() {
		return nil
	}
	b := []byte(`{`)
	if id := answer.Get("id").Str; id != "" {
		b = append(plugins.AppendString(append(b, `"id":`...), id), ',')
	}
	b = append(b, `"results":[`...)
	for i, result := range list.Array() {
		index, score := result.Get("index"), result.Get("relevance_score")
		n := index.Int()
		if index.Type != gjson.Number || score.Type != gjson.Number || n < 0 || n >= int64(len(r.Documents)) {
			return nil
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strconv.AppendInt(append(b, `{"index":`...), n, 10), `,"relevance_score":`...)
		b = append(b, score.Raw...)
		if r.ReturnDocuments {
			b = append(plugins.AppendString(append(b, `,"document":{"text":`...), r.Documents[n]), '}')
		}
		b = append(b, '}')
	}
	b = append(b, `],"meta":{"api_version":{"version":"2"}`...)
	if tokens := answer.Get("usage.total_tokens"); tokens.Type == gjson.Number {
		b = append(strconv.AppendInt(append(b, `,"tokens":{"input_tokens":`...), tokens.Int(), 10), '}')
	}
	return append(b, `}}`...)
}
