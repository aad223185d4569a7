package agentlog

import (
	"cmp"
	"os"
	"path/filepath"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// tokenCount returns a number of tokens, unknown if v is none.
func tokenCount(v gjson.Result) plugins.Count {
	if v.Type != gjson.Number || v.Num < 0 || v.Num >= 1<<53 {
		return plugins.Count{}
	}
	return plugins.Known(v.Int())
}

// inHome returns the folder in an environment variable, or else a folder in the home directory.
func inHome(variable string, folder ...string) string {
	if dir := os.Getenv(variable); dir != "" {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(append([]string{home}, folder...)...)
}

// timeOf returns a time in the format of RFC 3339, zero if v is none.
func timeOf(v gjson.Result) time.Time {
	at, _ := time.Parse(time.RFC3339, v.Str)
	return at
}

// firstText returns the first text that is not empty.
func firstText(texts ...gjson.Result) string {
	var s string
	for _, t := range texts {
		s = cmp.Or(s, t.Str)
	}
	return s
}
