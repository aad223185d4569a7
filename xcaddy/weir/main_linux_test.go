package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirhq/weir/internal/testkit/freeport"
)

// This binary of tests is Weir if the environment says so.
func TestMain(m *testing.M) {
	if os.Getenv("WEIR_TEST_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// machine is a directory and the ports of a quickstart.
type machine struct {
	t                *testing.T
	dir, site, admin string
}

func newMachine(t *testing.T) *machine {
	return &machine{t, t.TempDir(), freeport.Port(t), freeport.Port(t)}
}

func (m *machine) command(args ...string) *exec.Cmd {
	command := exec.CommandContext(m.t.Context(), os.Args[0], args...)
	command.Dir = m.dir
	command.Env = []string{
		"WEIR_TEST_MAIN=1", "HOME=" + m.dir, "PATH=" + os.Getenv("PATH"), "WEIR_PORT=" + m.site,
		"WEIR_ADMIN_PORT=" + m.admin, "WEIR_ADMIN=127.0.0.1:" + m.admin,
	}
	return command
}

// says runs a command that ends, and returns what it writes.
func (m *machine) says(args ...string) string {
	m.t.Helper()
	text, err := m.command(args...).CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%s%v", text, err)
	}
	return string(text)
}

// serve runs a command that serves, until the function that it returns is called.
func (m *machine) serve(command *exec.Cmd) (stop func()) {
	m.t.Helper()
	if err := command.Start(); err != nil {
		m.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = command.Wait()
		close(ended)
	}()
	stop = func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		<-ended
	}
	m.t.Cleanup(stop)
	m.await(func() bool {
		response, err := http.Get("http://127.0.0.1:" + m.site + "/health/ready")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return stop
}

func (m *machine) await(holds func() bool) {
	m.t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			m.t.Fatal("it takes too long")
		}
	}
}

func (m *machine) has(text string, wants ...string) {
	m.t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			m.t.Errorf("it says\n%s\nwant %q", text, want)
		}
	}
}

// Without a Caddyfile, the quickstart is served. A terminal sees where to go, and no log.
func TestRunQuickstart(t *testing.T) {
	m := newMachine(t)
	screen, terminal := openTerminal(t)
	command := m.command("run")
	command.Stderr = terminal
	stop := m.serve(command)
	first := make(chan string)
	go func() {
		var text bytes.Buffer
		for part := make([]byte, 4096); strings.Count(text.String(), "\n") < 4; {
			n, err := screen.Read(part)
			if err != nil {
				break
			}
			text.Write(part[:n])
		}
		first <- text.String()
	}()
	text := <-first
	site := "http://localhost:" + m.site
	m.has(text, "Dashboard  "+site+"/#key=weir_", "Admin key  ", "Base URLs  "+site+"/openai/v1, ", filepath.Join(m.dir, "weir-data", "weir.db"))
	if lines := strings.Count(text, "\n"); lines != 4 {
		t.Errorf("%d lines on the terminal, want 4:\n%s", lines, text)
	}
	secret, _, _ := strings.Cut(text[strings.Index(text, "weir_"):], "\r")
	key := func(args ...string) string {
		command := m.command(append([]string{"key"}, args...)...)
		command.Env = append(command.Env, "WEIR_API_KEY="+secret, "WEIR_URL="+site)
		text, _ := command.CombinedOutput()
		return string(text)
	}
	m.has(key("list"), "administrator")
	m.has(key("create", "team"), "this is the only time that its secret is shown")
	m.has(m.says("key", "admin"), "(administrator): this is the only time", "\nweir_")
	m.hasNoFileWith(secret)
	m.has(m.says("stats"), fmt.Sprintf("process %d, serves 127.0.0.1:%s, keeps records in sqlite:%s/weir-data/weir.db\nSTORE ", command.Process.Pid, m.site, m.dir))
	stop()

	// The key is shown once: a later start shows the one that anybody knows. It needs no terminal.
	again := m.command("run")
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	again.Stderr = log
	stop = m.serve(again)
	var shown []byte
	m.await(func() bool {
		shown, err = os.ReadFile(log.Name())
		return err != nil || bytes.Contains(shown, []byte("Data  "))
	})
	m.has(string(shown), "Dashboard  "+site+"/#key=weir-quickstart\n")
	stop()
}

// hasNoFileWith fails if a file of the machine has a text.
func (m *machine) hasNoFileWith(secret string) {
	m.t.Helper()
	err := filepath.WalkDir(m.dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(name)
		if bytes.Contains(text, []byte(secret)) {
			m.t.Errorf("%s has the secret", name)
		}
		return err
	})
	if err != nil {
		m.t.Error(err)
	}
}

// A file can be the argument, and a Caddyfile is written once.
func TestRunFile(t *testing.T) {
	m := newMachine(t)
	m.has(m.says("init", "my.conf"), "wrote my.conf: `weir run my.conf` serves it\n")
	m.has(m.says("init", "my.conf"), "Error: my.conf exists and stays as it is")
	m.has(m.says("validate", "my.conf"), "Valid configuration")
	command := m.command("run", "my.conf")
	var log bytes.Buffer
	command.Stderr = &log
	stop := m.serve(command)
	m.has(m.says("run", "my.conf", "--config", "other"), "--config and the argument both name a configuration")
	stop()
	m.has(log.String(), "serving initial configuration")
	m.has(m.says("start"), "there is no Caddyfile here: name one, or write one by `weir init`")
}

// A second process is refused at the admin endpoint of the first.
func TestOneProcess(t *testing.T) {
	m := newMachine(t)
	command := m.command("run")
	m.serve(command)
	other := newMachine(t)
	other.admin = m.admin
	other.has(other.says("init"), "wrote Caddyfile")
	for _, args := range [][]string{{"run"}, {"run", "Caddyfile"}, {"run", "--config", "Caddyfile"}, {"start"}} {
		said := other.says(args...)
		other.has(said, fmt.Sprintf("the admin endpoint 127.0.0.1:%s is taken: Weir ", m.admin), fmt.Sprintf("process %d, serves 127.0.0.1:%s, ", command.Process.Pid, m.site), "exit status 1")
	}
	stdin := other.command("run", "--config", "-", "--adapter", "caddyfile")
	text, err := os.Open(filepath.Join(other.dir, "Caddyfile"))
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	stdin.Stdin = text
	said, _ := stdin.CombinedOutput()
	other.has(string(said), "is taken: Weir ")
	other.has(other.says("run", "--config", "none"), "none: no such file")
	if _, err := os.Stat(filepath.Join(other.dir, "weir-data")); err == nil {
		t.Error("the refused process has opened its store")
	}
}

// Weir ends when its terminal closes, unless nohup started it.
func TestHangup(t *testing.T) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP) // else processes would inherit that SIGHUP is ignored if nohup started the test
	defer signal.Stop(hangups)
	m := newMachine(t)
	command := m.command("run")
	m.serve(command)
	if err := command.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	m.await(func() bool { return command.Process.Signal(syscall.Signal(0)) != nil })
	command = m.command("run")
	command.Path, command.Args = "/usr/bin/nohup", append([]string{"nohup"}, command.Args...)
	m.serve(command)
	if err := command.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if text := m.says("health"); !strings.Contains(text, "ready") || command.Process.Signal(syscall.Signal(0)) != nil {
		t.Errorf("after SIGHUP, weir health says %q of what nohup started", text)
	}
}

// Help, versions and downloads are Weir's.
func TestHelp(t *testing.T) {
	m := newMachine(t)
	for args, want := range map[string]string{
		"":                           "  query  ",
		"help":                       "  hash-key  ",
		"--help":                     "  version  ",
		"help run":                   "--watch",
		"run --help":                 "--watch",
		"version":                    "Weir ",
		"--version":                  "\nCaddy ",
		"upgrade":                    "go install github.com/weirhq/weir/xcaddy/weir@latest",
		"add-package example.com/x":  "add-package fetches a binary from caddyserver.com, which has no Weir",
		"remove-package example.com": "xcaddy build --with github.com/weirhq/weir ",
	} {
		said := m.says(strings.Fields(args)...)
		m.has(said, want)
		if strings.Contains(said, "caddyserver.com/docs") || strings.Contains(said, "caddy run") {
			t.Errorf("%q speaks of Caddy's manual:\n%s", args, said)
		}
	}
}

// A wrong flag or argument has another exit code than what fails.
func TestMisuse(t *testing.T) {
	m := newMachine(t)
	for args, want := range map[string][]string{
		"creat":           {"exit status 2", "weir has no command creat: see weir --help"},
		"budgte list":     {"exit status 2", "did you mean budget?"},
		"run --colour":    {"exit status 2", "unknown flag: --colour"},
		"key creat":       {"exit status 2", "did you mean create?"},
		"key create":      {"exit status 2", "weir key create <name>"},
		"restore a":       {"exit status 2", "weir restore <backup> <directory>"},
		"query --colour":  {"exit status 2", "unknown flag: --colour"},
		"hash-key secret": {"exit status 2", "hash-key takes no arguments"},
		"check nowhere":   {"exit status 1", "nowhere"},
	} {
		m.has(m.says(strings.Fields(args)...), want...)
	}
}

// openTerminal makes a terminal, and what shows its screen.
func openTerminal(t *testing.T) (screen, terminal *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close() })
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return screen, terminal
}
