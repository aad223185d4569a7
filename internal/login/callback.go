package login

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// callback is a server on this machine to which the browser comes back.
type callback struct {
	server  *http.Server
	url     string
	queries chan url.Values // gets the query of the first request with the state
}

// listenForCallback starts a callback that answers only requests with this state.
func listenForCallback(state string) (*callback, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &callback{url: "http://" + listener.Addr().String() + "/callback", queries: make(chan url.Values, 1)}
	c.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if r.URL.Path != "/callback" || query.Get("state") != state { // of others on this machine
			http.NotFound(w, r)
			return
		}
		text := "You are logged in. You can close this window."
		if query.Get("error") != "" {
			text = "You are not logged in: the terminal says why."
		}
		_, _ = io.WriteString(w, text)
		select {
		case c.queries <- query:
		default:
		}
	})}
	go func() { _ = c.server.Serve(listener) }()
	return c, nil
}

// close ends the server, after the browser has its answer.
func (c *callback) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = c.server.Shutdown(ctx)
}
