package translate

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"

	"github.com/weirhq/weir/plugins"
)

// Target is where an attempt goes.
type Target struct {
	// Model is the name that the provider has for the model.
	Model string
	// BaseURL is what the vendor's own SDK takes, without a slash at its end.
	BaseURL string
	// Vendor is whose API it is, "" if nothing but the host of BaseURL tells. A kind of provider that only
	// one vendor has sets it: the host may be that of a gateway, such as Azure's API Management.
	Vendor string
	// Key is the API key, "" for a provider that needs none.
	Key string
	// Tags are those that a Tagger puts into the request.
	Tags []Tag
	// Listed is the catalogue's id of Model, of which Model may be another name, such as the ARN of
	// a profile. It is "" if the catalogue does not know the model.
	Listed string
	// Capabilities are the capabilities of Model, nil if the catalogue does not know it.
	Capabilities *plugins.Capabilities
	// NoSummary: the provider has refused a summary of Model's reasoning.
	NoSummary bool
}

// Bearer is the header of keys that are bearer tokens (RFC 6750).
const Bearer = "Authorization"

// Post returns the request that posts body to a path below the base URL, with the
// key in keyHeader. A body is bytes, parts as SetBody takes them, or a value that is
// encoded as JSON, without the escapes that HTML needs.
func (t Target) Post(ctx context.Context, path, keyHeader string, body any) (*http.Request, error) {
	var parts [][]byte
	switch b := body.(type) {
	case [][]byte:
		parts = b
	case []byte:
		parts = [][]byte{b}
	default:
		data, err := Encode(b)
		if err != nil {
			return nil, err
		}
		parts = [][]byte{data}
	}
	req, err := t.Request(ctx, http.MethodPost, path, keyHeader)
	if err != nil {
		return nil, err
	}
	SetBody(req, parts...)
	req.Header.Set("Content-Type", "application/json")
	return req, nil
}

// Request returns the request to a path below the base URL, with the key in keyHeader.
func (t Target) Request(ctx context.Context, method, path, keyHeader string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, t.BaseURL+path, nil)
	if err != nil {
		return nil, err
	}
	switch {
	case t.Key == "":
	case keyHeader == Bearer:
		req.Header.Set(keyHeader, "Bearer "+t.Key)
	default:
		req.Header.Set(keyHeader, t.Key)
	}
	return req, nil
}

// smallBody is up to how many bytes parts are joined: a copy of them costs less than a second
// write to the connection.
const smallBody = 32 << 10

// SetBody sets a request's body to the parts in a row. Only small parts are copied.
func SetBody(req *http.Request, parts ...[]byte) {
	req.ContentLength = 0
	for _, part := range parts {
		req.ContentLength += int64(len(part))
	}
	if len(parts) > 1 && req.ContentLength <= smallBody {
		parts = [][]byte{bytes.Join(parts, nil)}
	}
	req.GetBody = func() (io.ReadCloser, error) {
		if len(parts) == 1 { // http.Transport writes the header together with this body, and before any other
			return io.NopCloser(bytes.NewReader(parts[0])), nil
		}
		rest := net.Buffers(slices.Clone(parts)) // writes itself without a buffer, as io.MultiReader cannot
		return io.NopCloser(&rest), nil
	}
	req.Body, _ = req.GetBody() // which has no error
}

// Encode returns the JSON of v without the escapes that HTML needs.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
