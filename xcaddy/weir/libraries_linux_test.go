package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// Weir reads what it wrote when it was built with another library for SQLite, or without a C
// compiler, also after a kill.
func TestFilesOfBothLibraries(t *testing.T) {
	if !*full {
		t.Skip("needs -full")
	}
	m := newMachine(t)
	binary := filepath.Join(t.TempDir(), "weir")
	t.Setenv("CGO_ENABLED", "0")
	run(t, "", "go", "build", "-ldflags=-w", "-o", binary, ".")
	const calls = 200
	for round := range 4 {
		command := m.command("run")
		if round%2 == 1 {
			command.Path = binary
		}
		m.serve(command)
		for range calls {
			response, err := http.Post("http://127.0.0.1:"+m.site+"/echo/v1/chat/completions", "application/json",
				strings.NewReader(`{"model": "echo-1", "messages": [{"role": "user", "content": "hello"}]}`))
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != http.StatusOK {
				t.Fatal(response.Status)
			}
		}
		if err := command.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		m.await(func() bool {
			_, err := http.Get("http://127.0.0.1:" + m.site + "/health/ready")
			return err != nil
		})
	}
	stop := m.serve(m.command("run")) // records what the journal has
	stop()
	want := fmt.Sprintf("%d records in the database", 4*calls)
	m.has(m.says("check", "weir-data"), want, "\nok\n")
	m.has(run(t, m.dir, binary, "check", "weir-data"), want, "\nok\n")
}
