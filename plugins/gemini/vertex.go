package gemini

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/translate"
)

// Vertex speaks to the Gemini models of Vertex AI. Its base URL is that of a
// project's location, and its key an OAuth access token.
type Vertex struct{ generateContent }

// Prepare implements translate.Provider.
func (Vertex) Prepare(ctx context.Context, p *translate.Request, t translate.Target) (*http.Request, error) {
	r, err := newRequest(p, t, true)
	if err != nil {
		return nil, err
	}
	r.Labels = labels(p.Metadata, t.Tags)
	req, err := r.post(ctx, t, "/publishers/google/models/", translate.Bearer)
	if err != nil {
		return nil, err
	}
	if r.tier != "" {
		req.Header.Set("X-Vertex-AI-LLM-Shared-Request-Type", r.tier)
	}
	return req, nil
}

// maxLabel is the greatest length of a key or value, and the greatest number of labels.
const maxLabel = 63

// labels are the tags, and of the other metadata what can be labels: of lower-case letters, digits, -
// and _. Keys begin with a letter. It is nil if there are none.
func labels(metadata json.RawMessage, tags []translate.Tag) json.RawMessage {
	var b json.RawMessage
	n := 0
	for _, tag := range tags {
		b = append(b, ',')
		b = gjson.AppendJSONString(b, tag.Name)
		b = append(b, ':')
		b = gjson.AppendJSONString(b, tag.Value)
		n++
	}
	gjson.ParseBytes(metadata).ForEach(func(key, v gjson.Result) bool {
		if key.Str == "" || key.Str[0] < 'a' || key.Str[0] > 'z' || !fitsLabel(key.Str) || !fitsLabel(v.Str) || n == maxLabel ||
			slices.ContainsFunc(tags, func(tag translate.Tag) bool { return tag.Name == key.Str }) {
			return true
		}
		b = append(b, ',')
		b = append(b, key.Raw...)
		b = append(b, ':')
		b = gjson.AppendJSONString(b, v.Str)
		n++
		return true
	})
	if n == 0 {
		return nil
	}
	b[0] = '{'
	return append(b, '}')
}

func fitsLabel(s string) bool {
	return len(s) <= maxLabel && strings.IndexFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_'
	}) < 0
}

var _ translate.Provider = (*Vertex)(nil)
