package caddyfile

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/headers"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/modules/llmlog"
	"github.com/weirhq/weir/plugins"
)

// parseProxy expands llm_proxy into llm_log and llm_forward, which takes the options of
// reverse_proxy. Syntax:
//
//	llm_proxy [<matcher>] <provider>|<url> [<url>] {
//		<subdirectives of llm_log and of reverse_proxy>
//	}
//
// It forwards to the provider's public address, or to the URL. The provider
// gets no X-Forwarded-* headers and no Via, no encoding is asked for that the
// client did not ask for, and everything is flushed as it comes. With `credentials
// platform`, it forwards to the provider of that label in the app llm.
func parseProxy(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	h.Next() // consume directive name
	matchers, err := h.ExtractMatcherSet()
	if err != nil {
		return nil, err
	}
	h.Next() // ExtractMatcherSet reset the cursor
	directive := h.Token()

	args := h.RemainingArgs()
	if len(args) == 0 || len(args) > 2 || len(args) == 2 && isURL(args[0]) {
		return nil, h.Err("llm_proxy takes a provider, an URL, or both, as in `llm_proxy azure https://lab.openai.azure.com`")
	}
	log := new(llmlog.Handler)
	if !isURL(args[0]) {
		log.Provider = args[0]
	}
	var proxyBlock []caddyfile.Token
	carrier := "llm" // the transport, unless the block names one
	options := log.Options()
	for nesting := h.Nesting(); h.NextBlock(nesting); {
		if h.Val() == "transport" {
			carrier = ""
		}
		if option, ok := options[h.Val()]; !ok {
			proxyBlock = append(proxyBlock, h.NextSegment()...)
		} else if err := option(h.Dispenser); err != nil {
			return nil, err
		}
	}
	if err := checkSite(h, directive, log); err != nil {
		return nil, err
	}
	upstream, err := proxyUpstream(h, log, args)
	if err != nil {
		return nil, err
	}
	proxy := new(reverseproxy.Handler)
	proxyHelper := h.WithDispenser(segment(directive, []string{"reverse_proxy", upstream}, proxyBlock))
	if err := proxy.UnmarshalCaddyfile(proxyHelper.Dispenser); err != nil {
		return nil, err
	}
	if err := proxy.FinalizeUnmarshalCaddyfile(proxyHelper); err != nil {
		return nil, err
	}
	if log.Credentials != "" {
		if proxy.TransportRaw != nil || len(proxy.Upstreams) != 1 || proxy.DynamicUpstreamsRaw != nil {
			return nil, h.Err("`credentials platform` takes the address and the transport of the provider in the global option llm: leave out `to`, `dynamic` and `transport`")
		}
		proxy.TransportRaw = caddyconfig.JSONModuleObject(new(llmapp.AccountTransport), "protocol", "llm_account", nil)
		carrier = ""
	}
	if err := makeTransparent(proxy, carrier); err != nil {
		return nil, err
	}

	route := caddyhttp.Route{HandlersRaw: []json.RawMessage{
		caddyconfig.JSONModuleObject(log, "handler", "llm_log", nil),
		caddyconfig.JSONModuleObject(proxy, "handler", "llm_forward", nil),
	}}
	if matchers != nil {
		route.MatcherSetsRaw = []caddy.ModuleMap{matchers}
	}
	return []httpcaddyfile.ConfigValue{{Class: "route", Value: route}}, nil
}

// proxyUpstream returns the upstream of reverse_proxy for the arguments of llm_proxy.
func proxyUpstream(h httpcaddyfile.Helper, log *llmlog.Handler, args []string) (string, error) {
	upstream := args[len(args)-1]
	switch {
	case log.Credentials != "" && (len(args) > 1 || isURL(upstream)):
		return "", h.Err("`credentials platform` goes to the address of a provider in the global option llm: name the provider alone, as in `llm_proxy openai`")
	case log.Credentials != "":
		return "{http.llm.upstream}", nil
	case isURL(upstream):
		return upstream, nil
	}
	if upstream = upstreamOf(args[0]); upstream == "" {
		return "", h.Errf("provider '%s' has no default upstream: give its URL as a second argument", args[0])
	}
	return upstream, nil
}

// upstreamOf returns the public address of a provider without the path, which clients
// send. It is "" if each customer of the provider has an address of their own.
func upstreamOf(provider string) string {
	baseURL, _ := plugins.DefaultTarget(provider)
	u, err := url.Parse(baseURL)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// isURL tells an upstream from the name of a provider, which has none of the
// characters that every address has.
func isURL(arg string) bool { return strings.ContainsAny(arg, ":/.{") }

// makeTransparent takes from the proxy what it would add to a request, but for
// what the user asked for. carrier is the transport of the proxy, "" if the user named one.
func makeTransparent(proxy *reverseproxy.Handler, carrier string) error {
	if proxy.Headers == nil {
		proxy.Headers = new(headers.Handler)
	}
	if proxy.Headers.Request == nil {
		proxy.Headers.Request = new(headers.HeaderOps)
	}
	ops := proxy.Headers.Request
	for _, name := range []string{"Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if ops.Set.Get(name) == "" && ops.Add.Get(name) == "" {
			ops.Delete = append(ops.Delete, name)
		}
	}
	// Go's transport asks for gzip on its own, and unpacks it, unless told not
	// to. A transport of another kind is left as it is.
	var transport struct {
		Protocol string `json:"protocol"`
		reverseproxy.HTTPTransport
	}
	if proxy.TransportRaw != nil {
		if err := json.Unmarshal(proxy.TransportRaw, &transport); err != nil {
			return err
		}
	}
	if transport.Protocol = cmp.Or(carrier, transport.Protocol, "http"); transport.Protocol != "http" && transport.Protocol != "llm" {
		return nil
	}
	if transport.Compression == nil {
		transport.Compression = new(bool)
	}
	if ops.Set.Get("Host") == "" {
		if ops.Set == nil {
			ops.Set = make(http.Header)
		}
		ops.Set.Set("Host", hostOf(proxy.Upstreams, transport.TLS != nil))
	}
	var err error
	proxy.TransportRaw, err = json.Marshal(transport)
	return err
}

// hostOf is the Host that a client would send to the upstream itself: without
// the default port. Of several upstreams, only Caddy knows which one it took.
func hostOf(pool reverseproxy.UpstreamPool, tls bool) string {
	if len(pool) != 1 {
		return "{http.reverse_proxy.upstream.hostport}"
	}
	defaultPort := ":80"
	if tls {
		defaultPort = ":443"
	}
	return strings.TrimSuffix(pool[0].Dial, defaultPort)
}
