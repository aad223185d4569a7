package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Source is where the bill of a provider is read.
type Source struct {
	// Provider is one of [Providers].
	Provider string
	// API is where a provider answers that has an API for its bill.
	API API
	// Files are the paths of exports, or patterns of them, of a provider that exports its bill.
	Files []string
}

// apiBills read the bills of providers that have an API for them.
var apiBills = map[string]func(API, context.Context, Window) (*Bill, error){
	"openai": API.OpenAI, "anthropic": API.Anthropic, "openrouter": API.OpenRouter,
}

// fileBill is the bill of a cloud, which is exported to files.
type fileBill struct {
	// providers are the names that records have for what the cloud bills.
	providers []string
	add       func(*Bill, io.Reader) error
}

var fileBills = map[string]fileBill{
	"aws":    {[]string{"bedrock"}, (*Bill).AddAWS},
	"google": {[]string{"vertex", "gemini"}, (*Bill).AddGoogle},
}

// Providers are those whose bills can be read, sorted.
func Providers() []string {
	return slices.Sorted(maps.Keys(providers()))
}

func providers() map[string]bool {
	all := make(map[string]bool)
	for name := range apiBills {
		all[name] = true
	}
	for name := range fileBills {
		all[name] = false
	}
	return all
}

// Check returns an error if the source lacks what its provider needs, or has what it does not take.
func (s Source) Check() error {
	hasAPI, known := providers()[s.Provider]
	switch {
	case !known:
		return fmt.Errorf("%q has no bill that can be read; expected one of %s", s.Provider, strings.Join(Providers(), ", "))
	case hasAPI && len(s.Files) > 0:
		return fmt.Errorf("%s: the bill is read from its API, not from %s", s.Provider, s.Files[0])
	case !hasAPI && len(s.Files) == 0:
		return fmt.Errorf("%s: name the files of the export", s.Provider)
	}
	return nil
}

// openRouterDays is how many days OpenRouter's activity has: the last ones that are complete.
const openRouterDays = 30

// TooEarlyError is the error for a window whose first days are not on the bill any longer.
type TooEarlyError struct {
	Provider string
	// First is the first day that can be compared.
	First Day
}

func (e *TooEarlyError) Error() string {
	return fmt.Sprintf("since: %s has the bill of the last %d complete days alone: the first day that can be compared is %s", e.Provider, openRouterDays, e.First)
}

// First returns the first day that the bill has at a time, 0 if it has all days.
func (s Source) First(now time.Time) Day {
	if s.Provider == "openrouter" {
		return DayOf(now) - openRouterDays
	}
	return 0
}

// LastWindow returns the days to compare at a time, unless somebody names others: the last month, or
// all days that the bill has, but for yesterday, whose usage may come late.
func (s Source) LastWindow(now time.Time) Window {
	if first := s.First(now); first > 0 {
		return Window{first, DayOf(now) - 1}
	}
	return Month(Month(now).From.Time().AddDate(0, 0, -1))
}

// Read reads what was billed in a window, and in some days around it. The error is a *[TooEarlyError] if
// the bill does not have the first days of the window any longer.
func (s Source) Read(ctx context.Context, window Window) (*Bill, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if first := s.First(time.Now()); window.From < first {
		return nil, &TooEarlyError{s.Provider, first}
	}
	if read := apiBills[s.Provider]; read != nil {
		return read(s.API, ctx, window)
	}
	f := fileBills[s.Provider]
	bill := NewFileBill(f.providers...)
	var read []os.FileInfo // patterns may overlap
	for _, pattern := range s.Files {
		paths, _ := filepath.Glob(pattern)
		if len(paths) == 0 {
			paths = []string{pattern} // not a pattern, or what it means is missing
		}
		for _, path := range paths {
			info, err := os.Stat(path)
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(read, func(other os.FileInfo) bool { return os.SameFile(other, info) }) {
				continue
			}
			read = append(read, info)
			if err := cmp.Or(ctx.Err(), f.addFile(bill, path)); err != nil {
				return nil, err
			}
		}
	}
	return bill, nil
}

func (f fileBill) addFile(bill *Bill, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	bill.exports.file = path
	if err := f.add(bill, file); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
