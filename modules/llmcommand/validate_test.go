package llmcommand

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/caddyserver/caddy/v2/modules/standard"
)

// validate finds a port that another program has, and names the line.
func TestValidateFindsPortsInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	file := filepath.Join(t.TempDir(), "Caddyfile")
	check := func(source string) error {
		if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		return checkPorts(file, "caddyfile")
	}
	err = check("{\n\tadmin off\n}\nhttp://127.0.0.1:" + port + " {\n\tbind 127.0.0.1\n\trespond ok\n}\n")
	if err == nil || !strings.Contains(err.Error(), "address already in use; stop the program that has it, or listen elsewhere, at "+file+":4") {
		t.Errorf("the error is %v", err)
	}
	if err := check("http://127.0.0.1:0 {\n\trespond ok\n}\n"); err != nil {
		t.Errorf("of a free port the error is %v", err)
	}
	if err := check("http://127.0.0.1:0 {\n\tno_such_directive\n}\n"); err == nil || !strings.Contains(err.Error(), "no_such_directive") {
		t.Errorf("of another mistake the error is %v", err)
	}
}
