package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var full = flag.Bool("full", false, "build with xcaddy, which downloads modules")

// xcaddy is the program that users of Caddy build it with, root the module that they name.
const (
	xcaddy = "github.com/caddyserver/xcaddy/cmd/xcaddy@v0.4.5"
	root   = "github.com/weirhq/weir"
)

var (
	requirement = regexp.MustCompile(regexp.QuoteMeta(root) + `(/storage/\w+)? v\S+`)
	replacement = regexp.MustCompile(`(?m)^replace ` + regexp.QuoteMeta(root) + `.*\n`)
)

// xcaddy builds a Weir of the published modules, without their replace directives.
func TestXcaddy(t *testing.T) {
	if !*full {
		t.Skip("needs -full")
	}
	version := fmt.Sprintf("v0.0.1-test.%d", time.Now().UnixNano()) // Go's cache of modules keeps a version for ever
	proxy, binary := t.TempDir(), filepath.Join(t.TempDir(), "caddy")
	goproxy := strings.TrimSpace(run(t, "", "go", "env", "GOPROXY"))
	cache := strings.TrimSpace(run(t, "", "go", "env", "GOMODCACHE"))
	for name, value := range map[string]string{
		"CGO_ENABLED": "1", "GONOSUMDB": root, "GOPROXY": "file://" + proxy + "," + goproxy,
		"XCADDY_GO_BUILD_FLAGS": "-ldflags=-w", // as CI builds: what others have compiled is there
	} {
		t.Setenv(name, value)
	}
	caddy := strings.Fields(run(t, "", "go", "list", "-m", "github.com/caddyserver/caddy/v2"))[1]
	t.Cleanup(func() {
		for _, action := range []string{"-exec chmod u+w {} +", "-delete"} { // Go writes the cache read-only
			find := append([]string{"-C", cache, "find", filepath.Dir(root), "cache/download/" + filepath.Dir(root), "-depth", "-path", "*" + version + "*"}, strings.Fields(action)...)
			_ = exec.Command("env", find...).Run()
		}
	})
	build := []string{"run", xcaddy, "build", caddy, "--output", binary}
	for _, module := range []string{"", "/storage/clickhouse", "/storage/redis"} {
		publish(t, proxy, module, version)
		build = append(build, "--with", root+module+"@"+version)
	}
	run(t, "", "go", build...)
	modules := run(t, "", binary, "list-modules")
	for _, module := range []string{"http.handlers.llm_gateway", "llm.storage.sqlite", "llm.storage.clickhouse", "llm.shared.redis"} {
		if !strings.Contains(modules, "\n"+module+"\n") {
			t.Errorf("the binary has no %s", module)
		}
	}
	if help := run(t, "", binary, "query", "--help"); !strings.Contains(help, "Shows the requests that a filter matches") {
		t.Errorf("query --help says %s", help)
	}
}

// publish writes a module of the checkout, below the root, as a proxy of modules serves it.
// https://go.dev/ref/mod#goproxy-protocol
func publish(t *testing.T, proxy, module, version string) {
	t.Helper()
	dir, folder := "../.."+module, filepath.Join(proxy, root, module, "@v")
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	gomod := replacement.ReplaceAllString(requirement.ReplaceAllString(string(text), root+"$1 "+version), "")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{".mod": gomod, ".info": fmt.Sprintf(`{"Version": %q}`, version)} {
		if err := os.WriteFile(filepath.Join(folder, version+name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tree := strings.TrimSpace(run(t, "", "git", "stash", "create")) // what is not committed, too
	if tree == "" {
		tree = "HEAD"
	}
	prefix := root + module + "@" + version + "/"
	archive := []string{
		"-C", "../..", "archive", "--format=zip", "--output=" + filepath.Join(folder, version+".zip"),
		"--prefix=" + prefix, "--add-virtual-file=" + prefix + "go.mod:" + gomod,
		tree + ":" + strings.TrimPrefix(module, "/"), ".", ":!go.mod",
	}
	for file := range strings.FieldsSeq(run(t, dir, "git", "ls-files", "*/go.mod")) { // a module has no files of another
		archive = append(archive, ":!"+filepath.Dir(file))
	}
	run(t, "", "git", archive...)
}

// run returns what a command writes to its standard output.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	command := exec.Command(name, args...)
	command.Dir = dir
	var log strings.Builder
	command.Stderr = &log
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, &log)
	}
	return string(out)
}
