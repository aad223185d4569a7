package providers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/plugins/translate"
)

// Account is a provider with the credentials by which it is called.
type Account struct {
	// ID is the same for the same kind, settings, address and key in any
	// configuration.
	ID [sha256.Size]byte
	// Label names the account in models like `lab/llama-4`.
	Label string
	// Provider is the provider's name, as records and the catalogue have it: the
	// kind, or the label where the catalogue has models under it.
	Provider string
	// Platform is true of an account that is configured for all organisations,
	// with the platform's credentials.
	Platform bool
	// Models are those that it serves; nil stands for those of the catalogue.
	Models []string

	API       API
	BaseURL   string
	Transport Transport

	key     string
	standIn string   // for key in requests, until a bill sends them
	tags    []string // Provider.Tags
	// withoutSummary has the models, by their names at the provider, of whose reasoning the provider
	// has refused a summary.
	withoutSummary sync.Map
}

// AskNoSummary notes that the provider refuses to summarize the reasoning of a model, as OpenAI does
// for organisations that it has not verified
// (https://help.openai.com/en/articles/10910291-api-organization-verification).
func (a *Account) AskNoSummary(model string) { a.withoutSummary.Store(model, struct{}{}) }

// Caller is whoever makes a call.
type Caller interface {
	// Verified returns an attribute of the caller that is not only said by the call, "" for none.
	Verified(attribute string) string
}

// Target returns where requests for a model go. Its key only stands for that of the
// account, which Send puts in its place: who has no bill cannot spend. listed is the model in the
// catalogue, nil if the catalogue does not know it. A caller of whom a tag is not known, or cannot be
// on the vendor's invoice, is refused: each charge has its tags.
func (a *Account) Target(model string, listed *catalog.Model, by Caller) (translate.Target, error) {
	t := translate.Target{Model: model, BaseURL: a.BaseURL, Key: a.standIn}
	_, t.NoSummary = a.withoutSummary.Load(model)
	if listed != nil {
		t.Listed, t.Capabilities = listed.ID, &listed.Capabilities
	}
	for _, attribute := range a.tags {
		value := by.Verified(attribute)
		if value == "" {
			return t, plugins.Rejected(http.StatusForbidden, translate.NotTagged, "The invoice of the provider %s names the %s of each call, and the API key has none.", a.Label, attribute)
		}
		tag := tagOf(attribute, value)
		if err := a.API.(translate.Tagger).CheckTag(t, tag); err != nil { // checkTags knows that it is one
			return t, plugins.Rejected(http.StatusForbidden, translate.NotTagged, "The invoice of the provider %s names the %s of each call, and that of this call %v.", a.Label, attribute, err)
		}
		t.Tags = append(t.Tags, tag)
	}
	return t, nil
}

// tagOf is the tag of an attribute. A property has its own name.
func tagOf(attribute, value string) translate.Tag {
	return translate.Tag{Name: strings.TrimPrefix(attribute, "property."), Value: value}
}

// checkTags finds tags that the vendor takes of no call.
func (a *Account) checkTags() error {
	tagger, ok := a.API.(translate.Tagger)
	if a.tags != nil && !ok {
		return errors.New("tags: the invoices of this kind of provider have none; leave them out")
	}
	for _, attribute := range a.tags {
		if err := tagger.CheckTag(translate.Target{Key: a.standIn}, tagOf(attribute, "x")); err != nil {
			return fmt.Errorf("tags: %s %w", attribute, err)
		}
	}
	return nil
}

// Transport carries requests to an account. It sends nothing by itself: Send and Probe do.
type Transport struct{ through http.RoundTripper }

// NewTransport returns a Transport that sends its requests through rt.
func NewTransport(rt http.RoundTripper) Transport { return Transport{rt} }

// Send sends a request with the account's key. Only a bill may call it, so that no call reaches a
// provider without having been admitted. No answer of the provider tells the key: its body is decoded
// and masked. So are the frames of a WebSocket, which must not be compressed. No refusal names
// the platform's account.
func (a *Account) Send(req *http.Request) (*http.Response, error) {
	resp, err := a.Transport.through.RoundTrip(a.sign(req))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		decode(resp)
	}
	a.maskKey(resp)
	if a.Platform {
		maskAccount(resp)
	}
	return resp, nil
}

// Probe asks whether the account's address answers. The request has no credentials, so
// that it costs nothing.
func (a *Account) Probe(ctx context.Context) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.BaseURL, nil)
	if err != nil {
		return nil, err
	}
	return a.Transport.through.RoundTrip(req)
}

// sign returns a request with the key of the account in place of what stands for it.
func (a *Account) sign(req *http.Request) *http.Request {
	if a.key == "" {
		return req
	}
	signed := *req
	signed.Header = maps.Clone(req.Header)
	for name, values := range req.Header {
		for i, value := range values {
			if strings.Contains(value, a.standIn) {
				values = slices.Clone(values)
				values[i] = strings.ReplaceAll(value, a.standIn, a.key)
				signed.Header[name] = values
			}
		}
	}
	if strings.Contains(req.URL.RawQuery, a.standIn) {
		to := *req.URL
		to.RawQuery = strings.ReplaceAll(to.RawQuery, a.standIn, url.QueryEscape(a.key))
		signed.URL = &to
	}
	return &signed
}

// usable reports whether the account has the credentials that it needs.
func (a *Account) usable() bool {
	o, ok := a.API.(keyOptional)
	return a.key != "" || a.KeyEnv() == "" || ok && o.KeyOptional()
}

// payable reports whether an organisation's account has credentials of its own,
// so that nobody else pays for its calls. ownAPI is true of an API that was
// configured for the organisation.
func (a *Account) payable(ownAPI bool) bool {
	c, ok := a.API.(credentials)
	return a.key != "" || a.KeyEnv() == "" || ownAPI && ok && c.HasCredentials()
}

// KeyEnv returns the environment variable from which the account takes its key
// unless one is configured, "" for a provider that needs none.
func (a *Account) KeyEnv() string {
	_, keyEnv := defaultTarget(a.API)
	return keyEnv
}

// CanForward reports whether the requests of clients can go to the account with its key in
// place of theirs: the account has an address, and its key alone decides who pays.
func (a *Account) CanForward() bool { return a.BaseURL != "" && a.keyHeader() != "" }

// keyHeader is the header field in which the provider takes its key, "" if it takes none
// that says who pays.
func (a *Account) keyHeader() string {
	if api, ok := a.API.(translate.KeyHeader); ok {
		return api.KeyHeader()
	}
	return translate.Bearer
}

// Authorize writes what stands for the account's key into the header of a request. Send puts the
// key in its place.
func (a *Account) Authorize(header http.Header) {
	switch field := a.keyHeader(); {
	case a.standIn == "":
	case field == translate.Bearer:
		header.Set(field, "Bearer "+a.standIn)
	default:
		header.Set(field, a.standIn)
	}
}

// WithoutKey returns a header without the field that Authorize has written. What stands in it is
// another text in each process; ID tells accounts apart.
func (a *Account) WithoutKey(header http.Header) http.Header {
	field := a.keyHeader()
	if a.standIn == "" || !strings.Contains(header.Get(field), a.standIn) {
		return header
	}
	header = maps.Clone(header)
	header.Del(field)
	return header
}

// address returns the scheme and the host of the account's address.
func (a *Account) address() *url.URL {
	u, err := url.Parse(a.BaseURL)
	if err != nil { // it was parsed when it was configured
		return new(url.URL)
	}
	return u
}

// Direct returns a client's request as a request to the account's address.
func (a *Account) Direct(req *http.Request) *http.Request {
	to, at := *req.URL, a.address()
	to.Scheme, to.Host = at.Scheme, at.Host
	to.Path = below(at.Path, to.Path)
	if to.RawPath != "" {
		to.RawPath = below(at.EscapedPath(), to.RawPath)
	}
	directed := *req
	directed.URL, directed.Host = &to, at.Host
	return &directed
}

// HasPrefix reports whether calls of the account's models may have the prefix in their paths: it
// has no words but those of the account's address, and those that name APIs. Other words may
// name a model, whatever the body says.
func (a *Account) HasPrefix(prefix string) bool {
	known := strings.Split(a.address().Path, "/")
	for word := range strings.SplitSeq(prefix, "/") {
		if word != "" && !slices.Contains(apiWords, word) && !slices.Contains(known, word) && !version.MatchString("/"+word) {
			return false
		}
	}
	return true
}

// apiWords name APIs in the paths of vendors, beside their versions. Azure embeds images below
// /models/images, and Vertex AI in express mode has models below /publishers/google.
var apiWords = []string{"anthropic", "api", "beta", "compatibility", "compatible-mode", "google", "images", "inference", "models", "openai", "publishers"}

// below puts the path of a client's request below the path of an account's address, such as a
// gateway's. A client that names the beginning of the address's path names all of it, and what both
// name stands once: /v1/models is /proxy/v1/models below /proxy/v1.
func below(base, path string) string {
	base = strings.TrimRight(base, "/")
	first, _, _ := strings.Cut(strings.TrimPrefix(base, "/"), "/")
	if base == "" || strings.HasPrefix(path+"/", "/"+first+"/") {
		return path
	}
	for end := range base {
		if base[end] == '/' && strings.HasPrefix(path+"/", base[end:]+"/") {
			return base[:end] + path
		}
	}
	if version.MatchString(base) { // the client names another, or none
		base = base[:strings.LastIndexByte(base, '/')]
	}
	return base + path
}

// version is a path that ends with the version of an API.
var version = regexp.MustCompile(`/v[0-9][a-z0-9]*$`)

// HostPort returns the host and the port of the account's address.
func (a *Account) HostPort() string {
	u := a.address()
	port := u.Port()
	if port == "" {
		port = "80"
		if u.Scheme == "https" {
			port = "443"
		}
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// payerHeaders are headers that say which part of a provider's account pays.
var payerHeaders = []string{"Openai-Organization", "Openai-Project"}

// PassHeaders copies those headers of a caller that mean something within an account at
// OpenAI. At an account that organisations share, those that say which part of it pays are
// left out with a warning, and the key of a repeated call is hashed with the organisation,
// which must not get the answer of another.
func (a *Account) PassHeaders(org string, shared bool, from, to http.Header) (warnings []string) {
	for _, name := range payerHeaders {
		switch values := from[name]; {
		case values == nil:
		case shared:
			warnings = append(warnings, name+": left out, the provider's account is shared with other organizations")
		default:
			to[name] = values
		}
	}
	if key := from.Get("Idempotency-Key"); key != "" {
		if shared {
			sum := sha256.Sum256([]byte(org + "\x00" + key))
			key = hex.EncodeToString(sum[:])
		}
		to.Set("Idempotency-Key", key)
	}
	return warnings
}
