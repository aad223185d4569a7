package plugintest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorded are the files of the folder of recorded traffic that match pattern.
// Without such a folder the test is skipped.
func recorded(t testing.TB, pattern string) []string {
	names, err := filepath.Glob(filepath.Join(os.Getenv("WEIR_RECORDINGS"), pattern))
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Skip("no recordings")
	}
	return names
}

func TestCheckTakesNativeStreams(t *testing.T) {
	for _, name := range recorded(t, "*responses__stream*.sse") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			stream, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Check(stream)
			if strings.HasPrefix(filepath.Base(name), "openrouter") {
				if err == nil || !strings.Contains(err.Error(), "output[0] differs") {
					t.Errorf("OpenRouter gives items another id in the terminal event: %v", err)
				}
				return
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}
