package llmcommand

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// init never writes over a Caddyfile, and says what to do.
func TestInitKeepsAFile(t *testing.T) {
	t.Chdir(t.TempDir())
	var out bytes.Buffer
	if _, err := run(t.Context(), initCommand, &out); err != nil || !strings.Contains(out.String(), "wrote Caddyfile") {
		t.Fatal(err, &out)
	}
	if err := os.WriteFile("Caddyfile", []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t.Context(), initCommand, &out); err == nil || !strings.Contains(err.Error(), "Caddyfile exists and stays as it is") {
		t.Error(err)
	}
	if text, err := os.ReadFile("Caddyfile"); err != nil || string(text) != "mine" {
		t.Errorf("%v: the file is now %q", err, text)
	}
}

// The last line of a failed start says what is wrong, and not where Caddy found it.
func TestErrorsOfAStart(t *testing.T) {
	for said, want := range map[string]string{
		"loading initial config: loading new config: llm app module: start: store default: name a folder: mkdir /x": "store default: name a folder: mkdir /x",
		"loading initial config: loading new config: loading http app module: provision http: server srv0: setting up route handlers: route 0: loading handler modules: position 0: loading module 'subroute': provision http.handlers.subroute: setting up subroutes: route 1: loading handler modules: position 0: loading module 'llm_query': provision http.handlers.llm_query: no API key opens store \"eu\": add `key`": `no API key opens store "eu": add ` + "`key`",
		"listening on :80: address in use": "listening on :80: address in use",
	} {
		var out bytes.Buffer
		cmd := &cobra.Command{SilenceErrors: true}
		cmd.SetErr(&out)
		if err := explain(cmd, errors.New(said)); err == nil || out.String() != "Error: "+want+"\n" {
			t.Errorf("%s is told as %q, want %q", said, &out, want)
		}
	}
}

func TestSiteURL(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:8080": "http://localhost:8080", ":8080": "http://localhost:8080", ":443": "https://localhost", "[::1]:8080": "http://[::1]:8080", "llm.example.com:443": "https://llm.example.com",
	} {
		if got := siteURL(address); got != want {
			t.Errorf("%s is at %s, want %s", address, got, want)
		}
	}
}
