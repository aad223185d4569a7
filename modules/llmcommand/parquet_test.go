package llmcommand

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// twoDays are calls around a midnight.
func twoDays() *api {
	a := &api{}
	midnight := time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)
	for i := range 6 {
		a.add(&storage.Record{
			ID: id(i), CreatedAt: storage.Millis(midnight.Add(time.Duration(i-2) * time.Hour)), Provider: "openai", Model: "gpt-5-mini", Status: plugins.Known(200),
			Cost: plugins.KnownCost(plugins.Nanodollars(i + 1)), Usage: plugins.Usage{Input: plugins.Known(int64(i))}, Properties: map[string]string{"Team": "a"},
		})
	}
	return a
}

// filesOf are the names of the files in a folder.
func filesOf(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Each day has its file, which replaces an earlier one. TestParquet in test/compat reads such files.
func TestExportAsParquet(t *testing.T) {
	for _, format := range []string{formatParquet, formatFOCUSParquet} {
		folder := filepath.Join(t.TempDir(), "calls")
		for range 2 {
			if _, err := run(t.Context(), exportCommand, io.Discard, "--address", twoDays().serve(t), "--format", format, "--folder", folder); err != nil {
				t.Fatal(err)
			}
		}
		if names := filesOf(t, folder); !slices.Equal(names, []string{"2026-11-01.parquet", "2026-11-02.parquet"}) {
			t.Errorf("%s: %q", format, names)
		}
		for _, name := range filesOf(t, folder) {
			file, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil || !bytes.HasPrefix(file, []byte("PAR1")) || !bytes.HasSuffix(file, []byte("PAR1")) {
				t.Errorf("%s: %v, %d bytes", name, err, len(file))
			}
		}
	}
}

// A day that is not complete leaves no file.
func TestExportAsParquetBreaksOff(t *testing.T) {
	a := twoDays()
	folder := t.TempDir()
	files, err := newParquet(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, day := range []string{"2026-11-01", "2026-11-02"} {
		at, err := time.Parse(time.DateOnly, day)
		if err != nil {
			t.Fatal(err)
		}
		if err := files.begin(at); err != nil {
			t.Fatal(err)
		}
		if err := files.EndRow(); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.abandon(); err != nil {
		t.Fatal(err)
	}
	if names := filesOf(t, folder); !slices.Equal(names, []string{"2026-11-01.parquet"}) {
		t.Errorf("%q", names)
	}
	for want, args := range map[string][]string{
		"name their folder":           {"--format", "parquet"},
		"--folder goes with":          {"--format", "csv", "--folder", folder},
		"--columns goes with":         {"--format", "parquet", "--folder", folder, "--columns", "time"},
		"connect: connection refused": {"--format", "parquet", "--folder", folder, "--address", "http://127.0.0.1:1"},
		"not a directory":             {"--format", "focus-parquet", "--folder", filepath.Join(folder, "2026-11-01.parquet")},
	} {
		if _, err := run(t.Context(), exportCommand, io.Discard, append([]string{"--address", a.serve(t)}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, expected %q", args, err, want)
		}
	}
}
