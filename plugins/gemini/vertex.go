package gemini

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// Vertex speaks to the Gemini models of Vertex AI, as `gemini` does to the
// Gemini API. Its key is an OAuth access token, such as
// `gcloud auth print-access-token` prints. `metadata` becomes the labels of the
// bill, as far as labels can hold it.
type Vertex struct {
	generateContent

	// Project is the Google Cloud project that pays. Default: the environment
	// variable GOOGLE_CLOUD_PROJECT.
	Project string `json:"project,omitempty"`

	// Location is the region that serves, such as `europe-west4`. Default: the
	// environment variable GOOGLE_CLOUD_LOCATION, else `global`.
	Location string `json:"location,omitempty"`
}

// DefaultTarget is the address of the location, and the environment variable
// from which gcloud takes an access token.
func (v Vertex) DefaultTarget() (baseURL, keyEnv string) {
	const keyVariable = "CLOUDSDK_AUTH_ACCESS_TOKEN"
	if v.Location == "global" {
		return "https://aiplatform.googleapis.com", keyVariable
	}
	return "https://" + v.Location + "-aiplatform.googleapis.com", keyVariable
}

// Prepare implements plugins.Provider.
func (v Vertex) Prepare(ctx context.Context, p *plugins.Prompt, t plugins.Target) (*http.Request, error) {
	r, err := newRequest(p, t, true)
	if err != nil {
		return nil, err
	}
	r.Labels = labels(p.Metadata)
	req, err := r.post(ctx, t.BaseURL+"/v1beta1/projects/"+v.Project+"/locations/"+v.Location+
		"/publishers/google/models/"+modelName(t))
	if err != nil {
		return nil, err
	}
	if t.Key != "" {
		req.Header.Set("Authorization", "Bearer "+t.Key)
	}
	if r.tier != "" {
		req.Header.Set("X-Vertex-AI-LLM-Shared-Request-Type", r.tier)
	}
	return req, nil
}

// maxLabel is how long a key or value of a label may be, and how many labels
// there may be.
const maxLabel = 63

// labels are those of the metadata that can be labels: lower-case letters,
// digits, - and _, keys with a letter first. It is nil for none.
func labels(metadata json.RawMessage) json.RawMessage {
	var b json.RawMessage
	n := 0
	gjson.ParseBytes(metadata).ForEach(func(key, v gjson.Result) bool {
		if key.Str == "" || key.Str[0] < 'a' || key.Str[0] > 'z' || !fitsLabel(key.Str) || !fitsLabel(v.Str) || n == maxLabel {
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

var _ plugins.Provider = (*Vertex)(nil)
