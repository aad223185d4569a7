package llmcommand

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir/internal/login"
	"github.com/weirhq/weir/plugins"
)

// Where the API and its key are when no flag says so.
const (
	defaultAddress = "http://localhost:8080"
	addressEnv     = "WEIR_URL"
	keyEnv         = "WEIR_API_KEY"
	caEnv          = "WEIR_CA"
)

func addClientFlags(cmd *cobra.Command) {
	cmd.Flags().String("address", "", "Address of the query API (default $"+addressEnv+", else "+defaultAddress+")")
	cmd.Flags().String("key-file", "", "File whose first line is the API key (default: the key is $"+keyEnv+", else your login at the address)")
	cmd.Flags().String("ca", "", "PEM file of a private CA to trust for https (default $"+caEnv+")")
}

// client asks the query API.
type client struct {
	http    *http.Client
	address string
	key     string // "" for that of the login at the address, if there is one
	logins  login.File
	header  http.Header // added to each request
	stderr  io.Writer
	warned  map[string]bool
	// date is the server's clock at its last answer.
	date time.Time
}

func newClient(cmd *cobra.Command) (*client, error) {
	flag, _ := cmd.Flags().GetString("address")
	return clientAt(cmd, cmp.Or(flag, os.Getenv(addressEnv), defaultAddress))
}

// clientAt is the client of the API at an address, with the key and the CA of the command's flags.
func clientAt(cmd *cobra.Command, address string) (*client, error) {
	address = strings.TrimSuffix(address, "/")
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("address %q: expected http:// or https:// and a host, as in %s", address, defaultAddress)
	}
	c := &client{http: http.DefaultClient, address: address, key: os.Getenv(keyEnv), stderr: cmd.ErrOrStderr(), warned: make(map[string]bool)}
	if file, _ := cmd.Flags().GetString("key-file"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("key-file: %w", err)
		}
		line, _, _ := strings.Cut(string(text), "\n")
		if c.key = strings.TrimSpace(line); c.key == "" {
			return nil, fmt.Errorf("key-file: the first line of %s is empty", file)
		}
	}
	flag, _ := cmd.Flags().GetString("ca")
	if file := cmp.Or(flag, os.Getenv(caEnv)); file != "" {
		if c.http, err = newTrustingClient(file); err != nil {
			return nil, fmt.Errorf("ca: %w", err)
		}
	}
	c.logins, err = login.Open()
	return c, err
}

// bearer returns the key, or a fresh token of the login at the address, and "" if there is neither.
func (c *client) bearer(ctx context.Context) (string, error) {
	if c.key != "" {
		return c.key, nil
	}
	token, err := c.logins.Fresh(ctx, c.address, c.http)
	if none, ok := errors.AsType[*login.NoLoginError](err); ok && none.Reason == nil {
		return "", nil
	}
	return token, err
}

// newTrustingClient returns a client that trusts the CAs of the system and of a file.
func newTrustingClient(file string) (*http.Client, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, err
	}
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", file)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return &http.Client{Transport: transport}, nil
}

// requestQuery is the body of a request query.
type requestQuery struct {
	Filter        json.RawMessage `json:"filter"`
	Sort          json.RawMessage `json:"sort,omitempty"`
	Offset        int             `json:"offset,omitempty"`
	Limit         int             `json:"limit"`
	IncludeInputs bool            `json:"includeInputs,omitempty"`
	// IncludeContent is nil for the server's default, which is true.
	IncludeContent *bool `json:"includeContent,omitempty"`
	// search lets the query take as long as it needs. It has no sort and no offset.
	search bool
}

// errUnreachable is the failure to get any answer.
var errUnreachable = errors.New("no answer")

// statusError is an answer other than success.
type statusError struct {
	status  int
	message string
}

func (e *statusError) Error() string { return e.message }

// transient reports whether asking again later may help.
func transient(err error) bool {
	var e *statusError
	return errors.Is(err, errUnreachable) || errors.Is(err, errBroken) ||
		errors.As(err, &e) && (e.status >= 500 || e.status == http.StatusTooManyRequests)
}

// requests yields the records of one page as they arrive, so that the bodies of
// a page never stand in memory together. An error comes last.
func (c *client) requests(ctx context.Context, q *requestQuery) iter.Seq2[gjson.Result, error] {
	return func(yield func(gjson.Result, error) bool) {
		path := "/v1/request/query-clickhouse"
		if q.search {
			path = "/v1/request/search"
		}
		response, err := c.send(ctx, http.MethodPost, path, q)
		if err != nil {
			yield(gjson.Result{}, err)
			return
		}
		defer response.Body.Close()
		stopped := false
		err = eachRecord(response.Body, func(record gjson.Result) bool {
			stopped = !yield(record, nil)
			return !stopped
		})
		switch {
		case stopped || err == nil:
		case errors.Is(err, errNoEnvelope):
			yield(gjson.Result{}, c.noAPI(response))
		default:
			yield(gjson.Result{}, fmt.Errorf("%s: %w", c.address, err))
		}
	}
}

// exportQuery is the body of a query for all requests that a filter matches, of which the answer has
// some fields.
type exportQuery struct {
	Filter  json.RawMessage `json:"filter"`
	Columns []string        `json:"columns"`
}

// maxLine is the size of the largest line of an export, in bytes. It has no bodies.
const maxLine = 16 << 20

// export yields records as they arrive, the oldest first. An error comes last.
func (c *client) export(ctx context.Context, q *exportQuery) iter.Seq2[gjson.Result, error] {
	return func(yield func(gjson.Result, error) bool) {
		response, err := c.send(ctx, http.MethodPost, "/v1/export", q)
		if err != nil {
			yield(gjson.Result{}, err)
			return
		}
		defer response.Body.Close()
		if response.Header.Get("Content-Type") != "application/x-ndjson" {
			yield(gjson.Result{}, c.noAPI(response))
			return
		}
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(make([]byte, 64<<10), maxLine)
		for lines.Scan() {
			line := lines.Bytes()
			if !plugins.ValidJSON(line) {
				yield(gjson.Result{}, fmt.Errorf("%s: %w", c.address, errBroken))
				return
			}
			if !yield(gjson.ParseBytes(line), nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(gjson.Result{}, fmt.Errorf("%s: %w", c.address, broken(err)))
		}
	}
}

// continueFrom is the size in bytes of a body from which the server is asked first: it
// closes the connection on one that is too large, and its answer may then be lost.
const continueFrom = 8 << 20

// ask sends a request, and returns the data of the whole answer.
func (c *client) ask(ctx context.Context, method, path string, body any) (gjson.Result, error) {
	answer, err := c.envelope(ctx, method, path, body)
	return answer.Get("data"), err
}

// envelope sends a request, and returns the whole answer, with what stands beside its data.
func (c *client) envelope(ctx context.Context, method, path string, body any) (gjson.Result, error) {
	response, err := c.send(ctx, method, path, body)
	if err != nil {
		return gjson.Result{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return gjson.Result{}, fmt.Errorf("%s: %w: %w", c.address, errBroken, err)
	}
	if !plugins.ValidJSON(text) {
		return gjson.Result{}, c.noAPI(response)
	}
	return gjson.ParseBytes(text), nil
}

// serves reports whether the site has a path, which may be one of a provider: no key is sent there. An
// empty path is served.
func (c *client) serves(ctx context.Context, path string) (bool, error) {
	if path == "" {
		return true, nil
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.address+path, http.NoBody)
	if err != nil {
		return false, err
	}
	response, err := c.http.Do(r)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	// Caddy answers 200 without a body where a site has nothing.
	return response.StatusCode != http.StatusNotFound && (response.StatusCode != http.StatusOK || response.ContentLength != 0), nil
}

// protobuf is the media type of what llm_otlp takes and answers.
const protobuf = "application/x-protobuf"

// send sends a request. body is nil, a message of protobuf, or what becomes JSON.
func (c *client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	text, mediaType, err := encodeBody(body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, c.address+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	for name, values := range c.header {
		r.Header[name] = values
	}
	r.Header.Set("Content-Type", mediaType)
	if len(text) > continueFrom {
		r.Header.Set("Expect", "100-continue")
	}
	bearer, err := c.bearer(ctx)
	if err != nil {
		return nil, err
	}
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	response, err := c.http.Do(r)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if c.date, err = http.ParseTime(response.Header.Get("Date")); err != nil {
		c.date = time.Now()
	}
	for _, warning := range response.Header.Values("Service-Warnings") {
		if !c.warned[warning] {
			c.warned[warning] = true
			fmt.Fprintln(c.stderr, "Warning:", printable(warning))
		}
	}
	if response.StatusCode >= 300 {
		defer response.Body.Close()
		return nil, c.refusal(response)
	}
	return response, nil
}

// encodeBody returns the body of a request for what send takes.
func encodeBody(body any) (text []byte, mediaType string, err error) {
	switch body := body.(type) {
	case nil:
		return nil, "application/json", nil
	case proto.Message:
		text, err = proto.Marshal(body)
		return text, protobuf, err
	}
	text, err = json.Marshal(body)
	return text, "application/json", err
}

// unreachable is the error for a request that got no answer, with what the user can do.
func (c *client) unreachable(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // the rest repeats the address
	}
	hint := "--address or $" + addressEnv + " says where Weir is"
	switch {
	case c.address == defaultAddress:
		hint = "start it with `weir run`, or name another address by --address or $" + addressEnv
	case errors.As(err, new(*tls.CertificateVerificationError)):
		hint = "--ca or $" + caEnv + " names the certificate of a private CA"
	}
	return fmt.Errorf("%w from %s: %w; %s", errUnreachable, c.address, err, hint)
}

// refusal is the error that an answer other than success stands for.
func (c *client) refusal(response *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	message := errorMessage(response.Header.Get("Content-Type"), text)
	e := &statusError{status: response.StatusCode}
	switch {
	case message == "":
		e.message = c.noAPI(response).Error()
	case response.StatusCode == http.StatusUnauthorized:
		e.message = fmt.Sprintf("%s: %s; give it by --key-file or $%s, or run `weir login %[1]s`", c.address, strings.TrimSuffix(message, "."), keyEnv)
	default:
		e.message = fmt.Sprintf("%s: %s", c.address, message)
	}
	return e
}

// errorMessage returns the message in the body of an error of Weir, "" if there is none.
func errorMessage(mediaType string, body []byte) string {
	if mediaType == protobuf { // of llm_otlp
		var answer rpcstatus.Status
		if proto.Unmarshal(body, &answer) != nil {
			return ""
		}
		return answer.GetMessage()
	}
	if !plugins.ValidJSON(body) {
		return ""
	}
	message := gjson.GetBytes(body, "error")
	if message.IsObject() { // of OpenAI's endpoints
		message = message.Get("message")
	}
	return message.Str
}

// noAPI is the error for an answer that is not the API's, such as an answer of another site.
func (c *client) noAPI(response *http.Response) error {
	directive := "llm_query"
	switch path := response.Request.URL.Path; {
	case strings.HasPrefix(path, "/v1/traces"):
		directive = "llm_otlp"
	case strings.HasPrefix(path, "/v1/keys"), strings.HasPrefix(path, "/v1/budgets"), strings.HasPrefix(path, "/v1/alerts"), strings.HasPrefix(path, "/v1/audit"):
		directive = "llm_control"
	}
	return fmt.Errorf("%s answered %s, and not as %s does; --address or $%s must name a site with %[3]s", c.address, response.Status, directive, addressEnv)
}
