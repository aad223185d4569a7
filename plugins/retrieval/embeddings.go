package retrieval

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// Embeddings is a request of OpenAI's Embeddings, with the two parameters that other vendors have
// beside.
type Embeddings struct {
	Texts []string
	// Dimensions is the length of the vectors, 0 for the model's own.
	Dimensions int64
	// InputType is what the vectors are for, "" if the client does not say.
	InputType InputType
	// Truncate says what becomes of a text that is too long, "" for what the vendor does.
	Truncate Truncation
	// Warnings name what is left out.
	Warnings []string
}

// InputType is what vectors are for, as `input_type` says it.
type InputType string

const (
	Query          InputType = "query"
	Document       InputType = "document"
	Classification InputType = "classification"
	Clustering     InputType = "clustering"
)

// inputTypes are the names that clients have for them: Cohere's and Voyage's.
var inputTypes = map[string]InputType{
	"query": Query, "search_query": Query,
	"document": Document, "search_document": Document,
	"classification": Classification,
	"clustering":     Clustering,
}

// Truncation says which end of a long text is cut off, as Cohere's `truncate` does.
type Truncation string

const (
	TruncateNone  Truncation = "NONE" // a text that is too long is an error
	TruncateStart Truncation = "START"
	TruncateEnd   Truncation = "END"
)

// maxTexts is how many texts a request has at most, as at OpenAI.
const maxTexts = 2048

// ParseEmbeddings reads a request. Its errors are *plugins.Error.
func ParseEmbeddings(body *plugins.Object) (*Embeddings, error) {
	e := new(Embeddings)
	for _, m := range body.Members {
		if m.Value.Type == gjson.Null {
			continue
		}
		var err error
		switch m.Name {
		case "model":
		case "input":
			e.Texts, err = texts(m.Value)
		case "encoding_format":
			if f := m.Value.Str; f != "float" && f != "base64" { // the gateway packs what comes as numbers
				err = plugins.Invalid(m.Name, "'encoding_format' is 'float' or 'base64'.")
			}
		case "dimensions":
			if e.Dimensions, err = positive(m); err != nil {
				return nil, err
			}
		case "input_type":
			var known bool
			if e.InputType, known = inputTypes[m.Value.Str]; !known {
				err = plugins.Invalid(m.Name, "'input_type' is 'query', 'document', 'classification' or 'clustering'.")
			}
		case "truncate", "truncation":
			e.Truncate, err = truncation(m)
		case "user":
			e.LeaveOut(m.Name)
		default:
			err = unknown(m.Name)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(e.Texts) == 0 || len(e.Texts) > maxTexts {
		return nil, plugins.Invalid("input", "'input' is a text, or a list of at most %d texts.", maxTexts)
	}
	return e, nil
}

// LeaveOut warns of a field that the provider does not get.
func (e *Embeddings) LeaveOut(field string) { e.Warnings = append(e.Warnings, leftOut(field)) }

func leftOut(field string) string { return field + ": not supported by the provider, left out" }

func unknown(field string) error {
	return plugins.Unsupported(field, "Unsupported parameter: '%s' is not supported by the provider.", field)
}

func texts(v gjson.Result) (all []string, err error) {
	if v.Type == gjson.String {
		return []string{v.Str}, nil
	}
	for i, text := range v.Array() {
		if text.Type != gjson.String {
			return nil, plugins.Invalid("input", "'input[%d]' is no text: tokens are numbers of OpenAI's models, and other vendors' models have others.", i)
		}
		all = append(all, text.Str)
	}
	return all, nil
}

func positive(m plugins.Member) (int64, error) {
	n, err := strconv.ParseInt(m.Value.Raw, 10, 32)
	if err != nil || n < 1 {
		return 0, plugins.Invalid(m.Name, "'%s' is a whole number above 0.", m.Name)
	}
	return n, nil
}

func truncation(m plugins.Member) (Truncation, error) {
	switch m.Value.Type {
	case gjson.True:
		return TruncateEnd, nil
	case gjson.False:
		return TruncateNone, nil
	}
	switch t := Truncation(strings.ToUpper(m.Value.Str)); t {
	case TruncateNone, TruncateStart, TruncateEnd:
		return t, nil
	}
	return "", plugins.Invalid(m.Name, "'%s' is 'NONE', 'START' or 'END'.", m.Name)
}

// CutsEnd is Truncate for a vendor that takes true and false. It is nil if the client does not say.
func (e *Embeddings) CutsEnd() (*bool, error) {
	if e.Truncate == TruncateStart {
		return nil, plugins.Unsupported("truncate", "Unsupported value: the provider cuts texts off at their end only.")
	}
	if e.Truncate == "" {
		return nil, nil
	}
	cuts := e.Truncate == TruncateEnd
	return &cuts, nil
}

// Vectors is what a provider's answer has.
type Vectors struct {
	All    []gjson.Result // lists of numbers
	Tokens plugins.Count  // that were read
}

// Call returns the call that sends the texts to a model, size texts a request, and reads each answer
// by read.
func (e *Embeddings) Call(model string, size int, request func(texts []string) (*http.Request, error), read func(translate.EndpointAnswer) Vectors) *translate.EndpointCall {
	call := &translate.EndpointCall{Count: (len(e.Texts) + size - 1) / size, Warnings: e.Warnings, Request: func(i int) (*http.Request, error) {
		return request(e.Texts[i*size : min((i+1)*size, len(e.Texts))])
	}}
	call.Read = func(answers []translate.EndpointAnswer) []byte {
		var all []gjson.Result
		tokens := plugins.Known(0)
		for _, answer := range answers {
			v := read(answer)
			all = append(all, v.All...)
			tokens = plugins.Count{N: tokens.N + v.Tokens.N, Valid: tokens.Valid && v.Tokens.Valid}
		}
		if len(all) != min(len(answers)*size, len(e.Texts)) {
			return nil
		}
		return encodeEmbeddings(model, all, tokens)
	}
	return call
}

// encodeEmbeddings returns OpenAI's object, nil if a vector is none.
func encodeEmbeddings(model string, vectors []gjson.Result, tokens plugins.Count) []byte {
	b := []byte(`{"object":"list","data":[`)
	for i, v := range vectors {
		if !v.IsArray() {
			return nil
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strconv.AppendInt(append(b, `{"object":"embedding","index":`...), int64(i), 10), `,"embedding":`...)
		b = append(append(b, v.Raw...), '}')
	}
	b = plugins.AppendString(append(b, `],"model":`...), model)
	if tokens.Valid {
		b = strconv.AppendInt(append(b, `,"usage":{"prompt_tokens":`...), tokens.N, 10)
		b = append(strconv.AppendInt(append(b, `,"total_tokens":`...), tokens.N, 10), '}')
	}
	return append(b, '}')
}
