package llmcommand

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"github.com/spf13/cobra"

	_ "github.com/weirhq/weir/modules/llmforward"
)

// validate finds a store whose folder cannot be made, and makes none.
func TestValidateFindsStoresWithoutAFolder(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	for path, fails := range map[string]bool{
		filepath.Join(dir, "a", "b", "weir.db"): false, filepath.Join(file, "weir.db"): true, filepath.Join(file, "a", "weir.db"): true,
	} {
		if err := os.WriteFile(file, []byte(`{"apps":{"llm":{"stores":{"main":{"storage":{"backend":"sqlite","path":"`+filepath.ToSlash(path)+`"}}}}}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		err := checkMachine(file, "")
		if (err != nil) != fails || fails && !strings.Contains(err.Error(), "the store main cannot have files: mkdir ") {
			t.Errorf("of %s the error is %v", path, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v is left: %v", left, err)
	}
}

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
		return checkMachine(file, "caddyfile")
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

// validate finds a site on which two handlers would record each call, also in a named route, and names the line.
func TestValidateFindsTwoRecorders(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "Caddyfile")
	for site, line := range map[string]string{
		"llm_log openai\nllm_proxy openai":   ":12",
		"route {\nllm_log\ninvoke shared\n}": ":13",
		"invoke shared":                      "",
		"respond ok":                         "",
	} {
		source := "{\nadmin off\nauto_https off\nllm {\nstore sqlite " + filepath.ToSlash(dir) + "/weir.db\n}\n}\n&(shared) {\nllm_proxy openai\n}\nhttp://127.0.0.1:0 {\n" + site + "\n}\n"
		if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		err := checkSites(file, "caddyfile")
		if line == "" && err != nil || line != "" && (err == nil || !strings.Contains(err.Error(), "would record and charge each call twice") || !strings.HasSuffix(err.Error(), ", at "+file+line)) {
			t.Errorf("%s: the error is %v", site, err)
		}
	}
}

// Caddy's command reads files of variables, and its verdict is not the last word.
func TestValidateReadsVariables(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "Caddyfile")
	source := "{\nadmin off\nauto_https off\nllm {\nstore sqlite " + filepath.ToSlash(dir) + "/weir.db\n}\n}\nhttp://127.0.0.1:{$PORT_OF_TEST} {\nllm_log openai\nllm_proxy openai\n}\n"
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	command := &cobra.Command{SilenceErrors: true, SilenceUsage: true, RunE: validate(func(*cobra.Command, []string) error {
		t.Setenv("PORT_OF_TEST", "0")
		if n, err := fmt.Println("Valid configuration"); err == nil {
			t.Errorf("%d bytes are printed", n)
		}
		return nil
	})}
	command.Flags().String("config", file, "")
	command.Flags().String("adapter", "caddyfile", "")
	command.Flags().StringSlice("envfile", []string{".env"}, "")
	if err := command.Execute(); err == nil || !strings.HasSuffix(err.Error(), ", at "+file+":9") {
		t.Errorf("the error is %v", err)
	}
}
