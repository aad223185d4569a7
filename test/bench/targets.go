//go:build linux

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// The targets that the others are compared with: a call of the provider itself,
// and Caddy with nothing but reverse_proxy.
const (
	direct = "direct"
	plain  = "caddy"
)

// target is something that calls go through. In Command, Env, URL and Headers
// these variables stand for what the harness chose, and the process has them in
// its environment:
//
//	$UPSTREAM       the mock provider's base URL, without /v1
//	$UPSTREAM_HOST  its host and port
//	$UPSTREAM_TLS   its host and port for TLS
//	$UPSTREAM_CA    the file with the certificate that it has there
//	$PORT           a free port to listen on
//	$ADMIN_PORT     another one
//	$DIR            an empty directory, which is also its working directory and $HOME
//	$HERE           the directory of the targets file
//	$WEIR           the binary of Weir
type target struct {
	// Name is how the report calls it.
	Name string `json:"name"`
	// Command starts it, in the foreground. Without one it is the provider.
	Command []string `json:"command,omitempty"`
	// Env is added to the environment, which has nothing else but PATH, HOME
	// and the variables above.
	Env map[string]string `json:"env,omitempty"`
	// URL is where chat completions are posted that pass, and StreamURLs where streams
	// are that gateways translate, by their API: responses, chat or messages. A target
	// takes part in the cases for which it has one.
	URL        string            `json:"url,omitempty"`
	StreamURLs map[string]string `json:"stream_urls,omitempty"`
	// Headers are sent with each call.
	Headers map[string]string `json:"headers,omitempty"`
	// Rewrites says that the target changes bodies. Then only their status is
	// checked; else each byte is, in both directions.
	Rewrites bool `json:"rewrites,omitempty"`

	// Of a target that runs an older Weir: the name of the target that runs this one, the
	// older version, and its binary.
	newer, older, binary string
}

func readTargets(file string) ([]target, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var targets []target
	if err := json.Unmarshal(raw, &targets); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	names := map[string]bool{}
	for i, t := range targets {
		if t.Name == "" || names[t.Name] || t.URL == "" && len(t.StreamURLs) == 0 {
			return nil, fmt.Errorf("%s: target %d: want a name of its own and a url", file, i+1)
		}
		names[t.Name] = true
	}
	if !names[direct] || !names[plain] {
		return nil, fmt.Errorf("%s: want the targets %s and %s, which the others are compared with", file, direct, plain)
	}
	return targets, nil
}

// url is where a kind of traffic is posted, "" if the target does not take it.
func (t *target) url(k traffic) string {
	if k.streams != "" {
		return t.StreamURLs[k.streams]
	}
	return t.URL
}

// variables are the values of the variables of a target.
type variables map[string]string

func (b *bench) newVariables(t *target) (variables, error) {
	dir, err := os.MkdirTemp(b.dir, "target-")
	if err != nil {
		return nil, err
	}
	here, err := filepath.Abs(filepath.Dir(b.targetsFile))
	if err != nil {
		return nil, err
	}
	p := variables{
		"UPSTREAM":      "http://" + b.provider.address,
		"UPSTREAM_HOST": b.provider.address,
		"UPSTREAM_TLS":  b.provider.secure,
		"UPSTREAM_CA":   filepath.Join(dir, "provider.pem"),
		"DIR":           dir,
		"HERE":          here,
		"WEIR":          cmp.Or(t.binary, b.weir),
	}
	if err := os.WriteFile(p["UPSTREAM_CA"], b.provider.authority, 0o600); err != nil {
		return nil, err
	}
	p["PORT"], p["ADMIN_PORT"], err = freePorts()
	return p, err
}

func (p variables) expand(s string) string {
	return os.Expand(s, func(name string) string { return p[name] })
}
