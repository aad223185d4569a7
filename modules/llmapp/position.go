package llmapp

import (
	"fmt"
	"regexp"

	"github.com/caddyserver/caddy/v2"
)

// At adds to an error of the configuration where in the Caddyfile it stands: path are
// the first words of lines, each within the block of the one before. Where the
// configuration is JSON, the error stays as it is.
func (a *App) At(err error, path ...string) error { return a.lines.Wrap(err, path...) }

var environment = regexp.MustCompile(`\{env\.([^}]+)\}`)

// expand replaces the placeholders of an option. The error does not repeat the value,
// which may be a secret.
func (a *App) expand(option, value string, within ...string) (string, error) {
	text, err := caddy.NewReplacer().ReplaceOrErr(value, true, true)
	if err == nil {
		return text, nil
	}
	if variable := environment.FindStringSubmatch(err.Error()); variable != nil {
		err = fmt.Errorf("the environment variable %s is not set; set it where Weir is started", variable[1])
	}
	return "", a.At(fmt.Errorf("%s: %w", option, err), append(within, option+" "+value)...)
}
