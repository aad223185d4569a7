package llmcommand

import (
	"bytes"
	"os"
	"strings"
	"testing"
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

func TestSiteURL(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:8080": "http://localhost:8080", ":8080": "http://localhost:8080", ":443": "https://localhost", "[::1]:8080": "http://[::1]:8080", "llm.example.com:443": "https://llm.example.com",
	} {
		if got := siteURL(address); got != want {
			t.Errorf("%s is at %s, want %s", address, got, want)
		}
	}
}
