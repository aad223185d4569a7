package clientconfig

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
	"github.com/tidwall/gjson"
	"go.yaml.in/yaml/v3"
)

var gateway = Gateway{Address: "https://llm.example.com", Key: "sk-weir-1", Models: []string{"gpt-5-mini", "claude-sonnet-4-5"}}

// home makes an empty home directory, and returns the client's file in it.
func home(t *testing.T, c *Client) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("USERPROFILE", dir)
	t.Setenv("AppData", filepath.Join(dir, "AppData"))
	for _, name := range []string{"XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "CONTINUE_GLOBAL_DIR"} {
		t.Setenv(name, "")
	}
	file, err := c.File("")
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func setup(t *testing.T, c *Client, g Gateway) string {
	t.Helper()
	change, err := c.Setup("", g)
	if err != nil {
		t.Fatal(err)
	}
	if err := change.Write(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(change.File)
	if err != nil || string(text) != string(change.After) {
		t.Fatalf("%s, %v, want %s", text, err, change.After)
	}
	return string(text)
}

func undo(t *testing.T, c *Client) *Change {
	t.Helper()
	change, err := c.Undo("")
	if err != nil {
		t.Fatal(err)
	}
	if err := change.Revert(); err != nil {
		t.Fatal(err)
	}
	return change
}

// A set-up leaves every other byte of a file, is valid, and is undone to the byte; also if it is
// done twice.
func TestSetupAndUndo(t *testing.T) {
	for _, c := range []struct {
		client *Client
		before []string // nil text means that there is no file
		check  func(t *testing.T, text string)
	}{
		{claude, []string{"", "{}", "{\n}\n", `{"a":1}`,
			"{\n  \"env\": {\"ANTHROPIC_BASE_URL\": \"http://old\", \"ANTHROPIC_AUTH_TOKEN\" : \"x\"},\n  \"permissions\": {\"allow\": [ ]}}",
			"{\r\n  \"env\": {}\r\n}\r\n"}, func(t *testing.T, text string) {
			plain, err := hujson.Standardize([]byte(text))
			if got := gjson.GetBytes(plain, "env"); err != nil || got.Get("ANTHROPIC_BASE_URL").Str != "https://llm.example.com" ||
				got.Get("ANTHROPIC_AUTH_TOKEN").Str != gateway.Key || got.Get("ANTHROPIC_MODEL").Str != "gpt-5-mini" {
				t.Errorf("%v\n%s", err, text)
			}
		}},
		{opencode, []string{"", "{\n  \"$schema\": \"https://opencode.ai/config.json\"\n}\n", `{"provider":{"weir":{"npm":"x"},"b":{}}}`,
			"{\n\t// mine\n\t\"model\": \"opus\",\n\t\"provider\": {\n\t\t\"b\": {}, // one\n\t},\n}\n", "{ /* none */ }"}, func(t *testing.T, text string) {
			plain, err := hujson.Standardize([]byte(text))
			if got := gjson.GetBytes(plain, "provider.weir"); err != nil || got.Get("options.baseURL").Str != "https://llm.example.com/v1" || !got.Get("models.gpt-5-mini").Exists() {
				t.Errorf("%v\n%s", err, text)
			}
		}},
		{codex, []string{"", "model = \"o3\" # mine\n\n[tools]\nweb_search = true", "# top\nmodel_provider=\"openai\"\n[model_providers.a]\nname='a'\n",
			"[model_providers.weir]\nname = \"W\"\nargs = [\n  1,\n]\n\n[model_providers.weir.auth]\ncommand = \"x\"\n\n# of tools\n[tools]\na = 1\n",
			"notice = \"\"\"\nmodel_provider = \"no\"\n[model_providers.weir]\n\"\"\"\r\n"}, func(t *testing.T, text string) {
			var got struct {
				Model    string `toml:"model"`
				Provider string `toml:"model_provider"`
				All      map[string]struct {
					Base string `toml:"base_url"`
					Key  string `toml:"experimental_bearer_token"`
				} `toml:"model_providers"`
			}
			if err := toml.Unmarshal([]byte(text), &got); err != nil || got.Model != "gpt-5-mini" || got.Provider != "weir" || got.All["weir"].Base != "https://llm.example.com/v1" || got.All["weir"].Key != gateway.Key {
				t.Errorf("%v\n%s", err, text)
			}
		}},
		{gemini, []string{"", "GEMINI_API_KEY=x", "export GOOGLE_GEMINI_BASE_URL = 'http://old'\r\n# mine\r\n"}, func(t *testing.T, text string) {
			if !strings.Contains(text, `"https://llm.example.com/gemini"`) || !strings.Contains(text, `GEMINI_CLI_CUSTOM_HEADERS="Service-Auth: Bearer sk-weir-1"`) || strings.Contains(text, "old") {
				t.Error(text)
			}
		}},
		{continueDev, []string{"", "name: mine\nversion: 1.0.0\nschema: v1", "name: mine\nmodels:\n# ours\n- name: a\n  provider: ollama\n  model: a\n\nrules: []\n",
			"models:\n    - name: \"Weir: gpt-5-mini\"\n      model: old\n    - {name: b}\n"}, func(t *testing.T, text string) {
			var got struct {
				Models []struct{ Name, Model, APIBase string }
			}
			err := yaml.Unmarshal([]byte(strings.ReplaceAll(text, "apiBase", "apibase")), &got)
			found := 0
			for _, m := range got.Models {
				if m.Name == "Weir: "+m.Model && m.APIBase == "https://llm.example.com/v1" {
					found++
				}
			}
			if err != nil || found != 2 {
				t.Errorf("%v\n%s", err, text)
			}
		}},
	} {
		for _, before := range c.before {
			t.Run(c.client.Name, func(t *testing.T) {
				file := home(t, c.client)
				if before != "" {
					put(t, file, before)
				}
				setup(t, c.client, Gateway{Address: "http://first", Key: "sk-0", Models: gateway.Models})
				text := setup(t, c.client, gateway)
				c.check(t, text)
				if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("%v, %v: others may read the key", info.Mode(), err)
				}
				change := undo(t, c.client)
				after, err := os.ReadFile(file)
				switch _, folder := os.Stat(filepath.Dir(file)); {
				case before == "" && (!os.IsNotExist(err) || !os.IsNotExist(folder)):
					t.Errorf("the file is left: %s", after)
				case string(after) != before || change.Edited:
					t.Errorf("%q, want %q", after, before)
				}
				if info, err := os.Stat(file); before != "" && (err != nil || info.Mode().Perm() != 0o644) {
					t.Errorf("%v, %v", info.Mode(), err)
				}
				if _, err := c.client.Undo(""); err == nil {
					t.Error("undone twice")
				}

				// With an edit by the user after the set-up, only what was set up goes.
				text = setup(t, c.client, gateway)
				edit := map[string]string{"codex": "\n[mine]\nx = 1\n", "gemini": "MINE=1\n", "continue": "\nmine: 1\n"}[c.client.Name]
				edited := text + edit
				if edit == "" {
					end := strings.LastIndexByte(text, '}')
					comma := ","
					if strings.HasSuffix(strings.TrimSpace(text[:end]), ",") {
						comma = ""
					}
					edited = text[:end] + comma + ` "mine": 1 ` + text[end:]
				}
				put(t, file, edited)
				change = undo(t, c.client)
				after, err = os.ReadFile(file)
				if err != nil || !change.Edited || strings.Contains(string(after), "llm.example.com") || strings.Contains(string(after), "sk-weir") || !strings.Contains(strings.ToLower(string(after)), "mine") {
					t.Errorf("%v, %s", err, after)
				}
				if _, _, err := c.client.format.find(after, []string{"none", "x"}); err != nil {
					t.Errorf("%v\n%s", err, after)
				}
			})
		}
	}
}

// A setting that the user has changed since stays, and is named.
func TestUndoKeepsWhatIsNew(t *testing.T) {
	file := home(t, claude)
	put(t, file, "{}")
	text := setup(t, claude, gateway)
	put(t, file, strings.Replace(text, "sk-weir-1", "sk-mine", 1))
	change := undo(t, claude)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: others may read the key that stays", info.Mode(), err)
	}
	if len(change.Kept) != 1 || change.Kept[0] != "env.ANTHROPIC_AUTH_TOKEN" || !strings.Contains(string(change.After), "sk-mine") || strings.Contains(string(change.After), "BASE_URL") {
		t.Errorf("%v %s", change.Kept, change.After)
	}
}

// A file that the user has deleted since the set-up is not made again by an undo, and is set up
// anew by another set-up.
func TestDeletedFile(t *testing.T) {
	file := home(t, codex)
	put(t, file, "model = \"o3\"\n")
	for range 2 {
		setup(t, codex, gateway)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	undo(t, codex)
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file is there: %v", err)
	}
}

// A file that is a link stays one, and one that cannot be edited is left as it is.
func TestLinksAndBrokenFiles(t *testing.T) {
	file := home(t, claude)
	target := filepath.Join(t.TempDir(), "dotfiles.json")
	put(t, target, "{}\n")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, file); err != nil {
		t.Skip(err)
	}
	setup(t, claude, gateway)
	undo(t, claude)
	if to, err := os.Readlink(file); err != nil || to != target {
		t.Error(to, err)
	}
	if text, _ := os.ReadFile(target); string(text) != "{}\n" {
		t.Errorf("%s", text)
	}
	for client, text := range map[*Client]string{
		claude: `{"env": "none"}`, opencode: "{", codex: "model_providers = {}\n", continueDev: "models: []\n",
	} {
		file := home(t, client)
		put(t, file, text)
		if change, err := client.Setup("", gateway); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v, %v", client.Name, change, err)
		}
	}
}

// A dash alone on its line is not guessed at.
func TestYAMLDashAlone(t *testing.T) {
	file := home(t, continueDev)
	for _, model := range []string{"o3", "gpt-4"} {
		put(t, file, "models:\n  -\n    name: GPT\n    provider: openai\n    model: "+model+"\n")
		if change, err := continueDev.Setup("", gateway); err == nil || !strings.Contains(err.Error(), "write the dash and the first name") {
			t.Errorf("%v, %v", change, err)
		}
	}
}

// An edit made after the change was shown is not overwritten.
func TestEditBeforeWrite(t *testing.T) {
	file := home(t, claude)
	set, err := claude.Setup("", gateway)
	if err != nil {
		t.Fatal(err)
	}
	const mine = `{"mine": 1}`
	put(t, file, mine)
	if err := set.Write(); !errors.Is(err, ErrFileChanged) {
		t.Error(err)
	}
	if text, _ := os.ReadFile(file); string(text) != mine {
		t.Errorf("%s", text)
	}
	edited := strings.Replace(setup(t, claude, gateway), "mine", "ours", 1)
	undone, err := claude.Undo("")
	if err != nil {
		t.Fatal(err)
	}
	put(t, file, edited)
	if err := undone.Revert(); !errors.Is(err, ErrFileChanged) {
		t.Error(err)
	}
	if text, _ := os.ReadFile(file); string(text) != edited {
		t.Errorf("%s", text)
	}
	undo(t, claude)
}

// A second set-up whose file cannot be written leaves what undoes the first.
func TestFailedSecondSetup(t *testing.T) {
	file := home(t, claude)
	const mine = `{"env": {"ANTHROPIC_BASE_URL": "http://mine"}}`
	put(t, file, mine)
	first := setup(t, claude, gateway)
	second, err := claude.Setup("", Gateway{Address: "http://second", Key: "sk-2"})
	if err != nil {
		t.Fatal(err)
	}
	at, err := recordFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.record.write(at); err != nil { // and the file is not written
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(file); string(text) != first {
		t.Fatalf("%s", text)
	}
	undo(t, claude)
	if text, _ := os.ReadFile(file); string(text) != mine {
		t.Errorf("%s", text)
	}
}

// Blank lines and comments of the user within or after an item neither break the file nor go with
// the item.
func TestYAMLItemWithGaps(t *testing.T) {
	file := home(t, continueDev)
	one := Gateway{Address: gateway.Address, Key: gateway.Key, Models: []string{"a", "b"}}
	for _, c := range []struct{ old, new, kept string }{
		{"    model: \"a\"\n", "\n    model: \"a\"\n", ""},
		{"  provider: openai\n", "  provider: openai\n\n# mine\n", "models.Weir: a"},
		{"rules: []", "\n# mine\nrules: []", ""},
	} {
		put(t, file, "models:\n  - name: mine\n    model: m\nrules: []\n")
		text := setup(t, continueDev, one)
		edited := strings.Replace(text, c.old, c.new, 1)
		if edited == text {
			t.Fatalf("%q is not in\n%s", c.old, text)
		}
		put(t, file, edited)
		change := undo(t, continueDev)
		var got struct {
			Models []struct{ Name, Model string }
			Rules  []string
		}
		if err := yaml.Unmarshal(change.After, &got); err != nil || got.Rules == nil || got.Models[len(got.Models)-1].Name != "mine" ||
			strings.Contains(c.new, "# mine") != strings.Contains(string(change.After), "# mine") || strings.Join(change.Kept, " ") != c.kept {
			t.Errorf("%v, %v\n%s", err, change.Kept, change.After)
		}
	}
}

// Claude Code ignores settings with comments.
func TestNoComments(t *testing.T) {
	put(t, home(t, claude), "{ // mine\n}\n")
	if _, err := claude.Setup("", gateway); err == nil || !strings.Contains(err.Error(), "Claude Code ignores a file with comments") {
		t.Error(err)
	}
}

// Models come in the order in which they are given, before those of the user.
func TestModelsInOrder(t *testing.T) {
	file := home(t, continueDev)
	put(t, file, "models:\n- name: mine\n  model: m\n")
	var got struct{ Models []struct{ Model string } }
	if err := yaml.Unmarshal([]byte(setup(t, continueDev, gateway)), &got); err != nil || len(got.Models) != 3 ||
		got.Models[0].Model != gateway.Models[0] || got.Models[1].Model != gateway.Models[1] {
		t.Errorf("%v, %v", got, err)
	}
}

// A new file in a folder that is a link is found again, and a link to nothing is an error.
func TestLinkedFolder(t *testing.T) {
	file := home(t, claude)
	dotfiles := t.TempDir()
	if err := os.Symlink(dotfiles, filepath.Dir(file)); err != nil {
		t.Skip(err)
	}
	setup(t, claude, gateway)
	undo(t, claude)
	if err := os.Symlink(filepath.Join(dotfiles, "none.json"), file); err != nil {
		t.Fatal(err)
	}
	if _, err := claude.Setup("", gateway); err == nil || !strings.Contains(err.Error(), "is a link whose target does not exist") {
		t.Error(err)
	}
}
