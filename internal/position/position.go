// Package position remembers at which lines of the Caddyfile the parts of the global option llm are.
// Errors of provisioning, which sees only the JSON configuration, name the line by it.
package position

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// Lines are the lines of an option, of which some configuration was made.
type Lines struct {
	config     string
	lines      [][]caddyfile.Token
	directives [][]caddyfile.Token // of sites
}

// last is what this process has adapted last: where a Caddyfile is run or loaded, it is
// provisioned next.
var last atomic.Pointer[Lines]

// Note remembers the tokens that config, which is JSON, was made of.
func Note(config []byte, tokens []caddyfile.Token) {
	l := &Lines{config: canonical(config)}
	for i, t := range tokens {
		if i == 0 || t.Line != tokens[i-1].Line || t.File != tokens[i-1].File {
			l.lines = append(l.lines, nil)
		}
		l.lines[len(l.lines)-1] = append(l.lines[len(l.lines)-1], t)
	}
	last.Store(l)
}

// NoteDirective remembers the line of a site's directive.
func NoteDirective(line []caddyfile.Token) {
	if l := last.Load(); l != nil {
		longer := *l
		longer.directives = append(slices.Clip(l.directives), line)
		last.Store(&longer)
	}
}

// Of returns the lines that config was made of, nil when it comes from elsewhere.
func Of(config []byte) *Lines {
	if l := last.Load(); l != nil && l.config == canonical(config) {
		return l
	}
	return nil
}

// canonical returns JSON in one form, whoever wrote it.
func canonical(text []byte) string {
	var v any
	_ = json.Unmarshal(text, &v) // of what was marshalled
	text, _ = json.Marshal(v)
	return string(text)
}

// Wrap adds to err where it stands: on the line that begins with the last element of path, in the
// block of the line of the one before. An element that no line there begins with is passed over, such
// as the organisation default, which has no block.
func (l *Lines) Wrap(err error, path ...string) error {
	if err == nil || l == nil {
		return err
	}
	found := -1
	block := l.lines
	if len(block) > 0 && opens(block[0]) { // the option's own
		block = block[1:]
	}
	from := len(l.lines) - len(block)
	for _, words := range path {
		i := lineOf(block, strings.Fields(words))
		if i < 0 {
			continue
		}
		found = from + i
		from, block = found+1, block[i+1:]
		if !opens(l.lines[found]) {
			block = nil
		}
	}
	if found < 0 {
		return err
	}
	return fmt.Errorf("%w, at %s:%d", err, l.lines[found][0].File, l.lines[found][0].Line)
}

// WrapDirective adds to err where the one directive of the sites stands that begins with words. If there are
// several, err stays as it is.
func (l *Lines) WrapDirective(err error, words ...string) error {
	if err == nil || l == nil {
		return err
	}
	var found [][]caddyfile.Token
	for _, line := range l.directives {
		if begins(line, words) {
			found = append(found, line)
		}
	}
	if len(found) != 1 {
		return err
	}
	return fmt.Errorf("%w, at %s:%d", err, found[0][0].File, found[0][0].Line)
}

// lineOf returns the first of the lines that begins with words, up to the end of the block that they
// are in and without those of blocks within. It is -1 if there is none.
func lineOf(lines [][]caddyfile.Token, words []string) int {
	depth := 0
	for i, line := range lines {
		if line[0].Text == "}" {
			depth--
		}
		if depth < 0 {
			return -1
		}
		if depth == 0 && begins(line, words) {
			return i
		}
		if opens(line) {
			depth++
		}
	}
	return -1
}

func opens(line []caddyfile.Token) bool { return line[len(line)-1].Text == "{" }

var environment = regexp.MustCompile(`\{env\.([^}]+)\}`)

// Expand returns the value of an option with what its placeholders stand for. A placeholder
// without a value is an error, which names the line but does not repeat the value: it may be a
// secret.
func (l *Lines) Expand(option, value string, within ...string) (string, error) {
	text, err := caddy.NewReplacer().ReplaceOrErr(value, true, true)
	if err == nil {
		return text, nil
	}
	if variable := environment.FindStringSubmatch(err.Error()); variable != nil {
		err = fmt.Errorf("the environment variable %s is not set; set it where Weir is started", variable[1])
	}
	return "", l.Wrap(fmt.Errorf("%s: %w", option, err), append(within, option+" "+value)...)
}

func begins(line []caddyfile.Token, words []string) bool {
	if len(words) > len(line) {
		return false
	}
	for i, word := range words {
		if line[i].Text != word {
			return false
		}
	}
	return true
}
