// Package clickhousetest runs a real ClickHouse for tests: the library of an npm
// package, which a small program loads, without root and without Docker. Without the
// library tests are skipped; get it once with
//
//	go run ./clickhousetest/fetch
//
// With REQUIRE_CLICKHOUSE=1 tests fail instead. CLICKHOUSE_TEST_DSN names another
// server, such as clickhouse://default@localhost:9000, on which the tests create and
// drop databases.
package clickhousetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// Server is a ClickHouse with data of its own.
type Server struct {
	// Addr is the host and port of the native protocol. It stays the same over Kill
	// and Restart.
	Addr string

	loader, library, dir string
	config               string // path of the configuration, "" without a configuration
	process              *exec.Cmd
	stdin                io.Closer
	output               *strings.Builder
}

// startTimeout bounds how long a server takes to listen.
const startTimeout = 30 * time.Second

// startQuery makes the server listen, writes the port to a file, and never ends. %s is the path of the file.
const startQuery = `SYSTEM START LISTEN HTTP; SYSTEM START LISTEN TCP;
SELECT getServerPort('tcp_port') INTO OUTFILE '%s' TRUNCATE FORMAT TSV;
SELECT sleepEachRow(3) FROM system.numbers SETTINGS max_block_size = 1, function_sleep_max_microseconds_per_block = 30000000,
	max_rows_to_read = 0, max_execution_time = 0 FORMAT Null`

// Start starts a server that ends with the test. It skips the test if there is no ClickHouse. The
// configuration is the content of config.xml, including users, profiles and quotas. With "", the server
// has only the user default.
func Start(t testing.TB, configuration string) *Server {
	t.Helper()
	s := &Server{dir: t.TempDir()}
	var err error
	if s.loader, s.library, err = programs(); err != nil {
		missing(t, err)
	}
	if configuration != "" {
		s.config = filepath.Join(s.dir, "config.xml")
		text := fmt.Sprintf("<clickhouse><users_config>%s</users_config>%s</clickhouse>", s.config, configuration)
		if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.start("0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

func missing(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("REQUIRE_CLICKHOUSE") != "" {
		t.Fatalf("there is no ClickHouse, and REQUIRE_CLICKHOUSE is set: %v", err)
	}
	t.Skip("there is no ClickHouse: go run ./clickhousetest/fetch")
}

func (s *Server) start(port string) error {
	listening := filepath.Join(s.dir, "port")
	if err := os.Remove(listening); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	s.output = new(strings.Builder)
	arguments := []string{s.library, "--path=" + filepath.Join(s.dir, "data"), "--listen_host=127.0.0.1",
		"--http_port=0", "--tcp_port=" + port, "--query=" + fmt.Sprintf(startQuery, listening)}
	if s.config != "" {
		arguments = append(arguments, "--config-file="+s.config)
	}
	s.process = exec.Command(s.loader, arguments...)
	s.process.Stdout, s.process.Stderr = s.output, s.output
	var err error
	if s.stdin, err = s.process.StdinPipe(); err != nil {
		return err
	}
	if err := s.process.Start(); err != nil {
		return err
	}
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(listening)
		if err == nil && strings.HasSuffix(string(text), "\n") {
			s.Addr = "127.0.0.1:" + strings.TrimSpace(string(text))
			return nil
		}
		if time.Now().After(deadline) {
			s.Kill()
			return fmt.Errorf("ClickHouse does not listen: %s", s.output)
		}
	}
}

// Dir is the folder with the server's files.
func (s *Server) Dir() string { return filepath.Join(s.dir, "data") }

// Kill ends the server as kill -9 does.
func (s *Server) Kill() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill()
	_ = s.process.Wait() // which tells of the kill
	_ = s.stdin.Close()
	s.process = nil
}

// Restart starts a killed server again, on the same port.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if err := s.start(s.Addr[strings.LastIndexByte(s.Addr, ':')+1:]); err != nil {
		t.Fatal(err)
	}
}

// shared is the server of all tests of a process that need only a database.
var shared struct {
	sync.Once
	Server
	err error
}

// Main runs the tests of a package, and ends the server that they share.
func Main(m *testing.M) int {
	defer func() {
		shared.Kill()
		_ = os.RemoveAll(shared.dir)
	}()
	return m.Run()
}

var databases atomic.Int64

// Options returns the options to connect to a new, empty database. The end of the test drops it.
func Options(t testing.TB) *clickhouse.Options {
	t.Helper()
	admin := options(t)
	conn, err := clickhouse.Open(admin)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("weir_test_%d_%d", os.Getpid(), databases.Add(1))
	if err := conn.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Exec(context.Background(), "DROP DATABASE "+name+" SYNC"); err != nil {
			t.Error(err)
		}
		_ = conn.Close()
	})
	o := *admin
	o.Auth.Database = name
	return &o
}

func options(t testing.TB) *clickhouse.Options {
	t.Helper()
	if dsn := os.Getenv("CLICKHOUSE_TEST_DSN"); dsn != "" {
		o, err := clickhouse.ParseDSN(dsn)
		if err != nil {
			t.Fatalf("CLICKHOUSE_TEST_DSN: %v", err)
		}
		return o
	}
	loader, lib, err := programs()
	if err != nil {
		missing(t, err)
	}
	shared.Do(func() {
		shared.loader, shared.library = loader, lib
		if shared.dir, shared.err = os.MkdirTemp("", "weir-clickhouse-"); shared.err == nil {
			shared.err = shared.start("0")
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return &clickhouse.Options{Addr: []string{shared.Addr}}
}
