package compat

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

var full = flag.Bool("full", false, "with -compat: try every client with every kind of provider")

// clientPrograms try clients, of which each writes its name, the model and what went
// wrong by task.
var clientPrograms = []struct {
	command []string
	clients []string
	heavy   bool // its packages are many: it runs with -full alone
}{
	{[]string{"node", "node/matrix.js"}, []string{
		"openai-node responses", "openai-node conversations", "openai-node chat", "anthropic-node", "ai-sdk", "ai-sdk chat", "agents-js", "agents-js chat",
	}, false},
	{[]string{"python/.venv/bin/python", "python/sdks.py"}, []string{
		"openai-python responses", "openai-python conversations", "openai-python chat", "anthropic-python",
	}, false},
	{[]string{"python/.frameworks/bin/python", "python/frameworks.py"}, []string{
		"agents-python", "agents-python chat", "langchain", "langchain chat", "langchain messages", "llama-index", "llama-index chat",
		"litellm", "litellm chat", "litellm messages", "instructor RESPONSES_TOOLS", "instructor TOOLS", "instructor ANTHROPIC_TOOLS",
	}, true},
}

// TestClientMatrix has each client do the same tasks with each kind of provider: a text,
// a stream, a call of a function, an answer by a schema. Without -full it is each client
// with one kind, and each kind with one client. What came of it is a table of
// docs/clients.md.
func TestClientMatrix(t *testing.T) {
	if !*withClients {
		t.Skip("the clients need Node.js and Python: see README.md, then go test ./test/compat -compat")
	}
	w := startKinds(t)
	known := make(table)
	file, err := os.ReadFile("testdata/clients.json")
	if err == nil {
		err = json.Unmarshal(file, &known)
	}
	if err != nil {
		t.Fatal(err)
	}
	var clients []string
	for i, p := range clientPrograms {
		clients = append(clients, p.clients...)
		if p.heavy && !*full {
			continue
		}
		var trials []object
		for j, client := range p.clients {
			for _, k := range providerKinds {
				if *full || k.name == "echo" || i+j == 0 {
					trials = append(trials, object{"client": client, "model": k.id(), "base_url": w.url})
				}
			}
		}
		for _, o := range try(t, p.command, trials) {
			kind, _, _ := strings.Cut(o.Model, "/")
			known.set(o.Client, kind, o.err())
		}
	}
	if *update {
		b, err := json.MarshalIndent(known, "", "\t")
		if err == nil {
			err = os.WriteFile("testdata/clients.json", append(b, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	checkPage(t, "../../docs/clients.md", "clients", known.markdown(clients, kindNames()))
}

// trialOutcome is what a client says of a model.
type trialOutcome struct {
	Client, Model string
	Failures      map[string]string // by task
}

func (o trialOutcome) err() error {
	tasks := make(map[string][]string) // by reason
	for _, task := range slices.Sorted(maps.Keys(o.Failures)) {
		tasks[o.Failures[task]] = append(tasks[o.Failures[task]], task)
	}
	var all []string
	for _, reason := range slices.Sorted(maps.Keys(tasks)) {
		all = append(all, strings.Join(tasks[reason], ", ")+": "+reason)
	}
	if all == nil {
		return nil
	}
	return errors.New(strings.Join(all, "; "))
}

func try(t *testing.T, command []string, trials []object) (outcomes []trialOutcome) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Stdin = bytes.NewReader(mustJSON(trials))
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v (README.md says what to install)\n%s", strings.Join(command, " "), err, &complaints)
	}
	for line := range bytes.Lines(out) {
		var o trialOutcome
		if err := json.Unmarshal(line, &o); err != nil {
			t.Fatalf("%s printed %.300q: %v", command[1], line, err)
		}
		outcomes = append(outcomes, o)
	}
	if len(outcomes) != len(trials) {
		t.Fatalf("%s tried %d of %d\n%s", command[1], len(outcomes), len(trials), &complaints)
	}
	return outcomes
}
