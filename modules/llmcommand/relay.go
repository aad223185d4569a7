package llmcommand

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/login"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
)

const (
	// relayAddress is where a relay listens unless a flag says otherwise.
	relayAddress = "127.0.0.1:9347"
	// relayKey is what agents have as their key, which the relay replaces.
	relayKey = "weir-relay"
)

func relayCommand(cmd *cobra.Command) {
	addClientFlags(cmd)
	cmd.Flags().String("listen", relayAddress, "Address of this machine on which to listen")
	cmd.Args = cobra.NoArgs
	cmd.RunE = runRelay
}

func runRelay(cmd *cobra.Command, _ []string) error {
	address, _ := cmd.Flags().GetString("address")
	c, err := clientOfLogin(cmd, address)
	if err != nil {
		return err
	}
	bearer, err := c.bearer(cmd.Context())
	if err != nil {
		return err
	}
	if bearer == "" {
		return &login.NoLoginError{Address: c.address}
	}
	listen, _ := cmd.Flags().GetString("listen")
	if host, _, err := net.SplitHostPort(listen); err != nil || !login.IsLoopback(host) {
		return misused("--listen %s: expected an address of this machine alone, as in %s: whoever reaches the relay calls with your token", listen, relayAddress)
	}
	handler, err := newRelay(c)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(cmd.Context(), "tcp", listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "http://%s calls %s with your token, for whoever is on this machine. Agents take it as the address of the gateway, and any key.\n", listener.Addr(), c.address)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	stop := context.AfterFunc(cmd.Context(), func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// relay sends requests of this machine on to the gateway of a client, with a fresh token in place
// of the key that they have. It changes nothing else, and passes bytes on as they come.
type relay struct {
	client *client
	proxy  httputil.ReverseProxy
}

func newRelay(c *client) (*relay, error) {
	gateway, err := url.Parse(c.address)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport)
	if custom, ok := c.http.Transport.(*http.Transport); ok {
		transport = custom
	}
	transport = transport.Clone()
	transport.DisableCompression = true // else an answer without a Content-Encoding would come decoded
	r := &relay{client: c}
	r.proxy = httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,
		Rewrite:       func(p *httputil.ProxyRequest) { p.SetURL(gateway) },
		ErrorHandler:  r.unanswered,
		ErrorLog:      log.New(c.stderr, "", log.LstdFlags),
	}
	return r, nil
}

// ServeHTTP implements http.Handler.
func (r *relay) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	host := q.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	// A page of the web can make a browser send requests here: to this address, which its Origin
	// tells, or to a name of its own that it has let lead here, which Host tells.
	if !login.IsLoopback(host) || q.Header.Get("Origin") != "" || q.Header.Get("Sec-Fetch-Site") == "cross-site" {
		refuse(w, q, plugins.Rejected(http.StatusForbidden, "forbidden", "The relay of this machine serves programs that call http://%s, and no pages of the web.", relayAddress))
		return
	}
	token, err := r.client.bearer(q.Context())
	switch {
	case errors.As(err, new(*login.NoLoginError)) || err == nil && token == "":
		if err == nil {
			err = &login.NoLoginError{Address: r.client.address}
		}
		refuse(w, q, plugins.Rejected(http.StatusUnauthorized, "invalid_token", "weir relay: %v.", err))
		return
	case err != nil:
		refuse(w, q, plugins.Unavailable("identity_unavailable", 5*time.Second, fmt.Sprintf("weir relay: there is no fresh token: %v.", err)))
		return
	}
	if q.Header.Get("Service-Auth") != "" { // the other fields are the vendor's
		q.Header.Set("Service-Auth", "Bearer "+token)
	} else {
		q.Header.Del("X-Api-Key")
		q.Header.Del("Api-Key")
		q.Header.Set("Authorization", "Bearer "+token)
	}
	// A transport looks for more than the announced length. By then the answer may have begun, with
	// which the server closes the body: the transport would take that for a failure, and cut the answer.
	if q.ContentLength > 0 {
		q.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(q.Body, q.ContentLength), q.Body}
	}
	r.proxy.ServeHTTP(w, q)
}

// unanswered answers for a gateway that does not.
func (r *relay) unanswered(w http.ResponseWriter, q *http.Request, err error) {
	if q.Context().Err() != nil { // the agent has gone
		return
	}
	e := plugins.Refused(apierror.UnansweredStatus(err), "")
	e.Code, e.Message = "gateway_unreachable", fmt.Sprintf("weir relay: the gateway %s cannot be reached: %v.", r.client.address, err)
	refuse(w, q, e)
}

func refuse(w http.ResponseWriter, q *http.Request, e *plugins.Error) {
	_ = apierror.Write(w, observe.Detect("", q.URL.Path), e) // an agent that has gone gets none
}
