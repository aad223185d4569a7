package cache

import (
	"cmp"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirhq/weir/internal/directive"
	"github.com/weirhq/weir/modules/internal/control"
)

// Config lets the cache answer the calls of a site whose callers do not ask for it.
type Config struct {
	// MaxAge is how old an answer may be, at most 365 days. Default: 7 days.
	MaxAge caddy.Duration `json:"max_age,omitempty"`
}

// defaultAge is how old an answer may be if nobody says it.
const defaultAge = 7 * 24 * time.Hour

// Validate checks the settings. A nil Config is valid.
func (c *Config) Validate() error {
	if c != nil && (c.MaxAge < 0 || time.Duration(c.MaxAge) > control.MaxCacheAge) {
		return fmt.Errorf("cache %v: want at most 365 days", time.Duration(c.MaxAge))
	}
	return nil
}

// Option reads `cache [<max_age>]` in a Caddyfile.
func Option(to **Config) directive.Option {
	return func(d *caddyfile.Dispenser) error {
		*to = new(Config)
		if !d.NextArg() {
			return nil
		}
		age, err := caddy.ParseDuration(d.Val())
		if err != nil || age <= 0 {
			return d.Errf("cache %s: want how old an answer may be, as in `cache 7d`", d.Val())
		}
		(*to).MaxAge = caddy.Duration(age)
		if d.NextArg() {
			return d.ArgErr()
		}
		return nil
	}
}

// Options is what a caller and the site want of the cache for a call.
type Options struct {
	Read, Save bool
	// MaxAge bounds the age of an answer that is read, 0 for none; Lifetime is how long an
	// answer is kept.
	MaxAge, Lifetime time.Duration
	Buckets          int
	Seed             string
	Ignore           []string
	// Asked: the caller asks for the cache, and is told why it does not serve.
	Asked bool
}

// Options returns what a caller wants of the cache, nil if that is nothing. c is the site's, nil
// if only callers decide.
func (c *Config) Options(requested *control.Cache) *Options {
	enabled := c != nil
	if requested.Enabled != nil {
		enabled = *requested.Enabled
	}
	read, save := enabled, enabled
	if requested.Read != nil {
		read = *requested.Read
	}
	if requested.Save != nil {
		save = *requested.Save
	}
	age := requested.MaxAge
	anew := age != nil && *age == 0 // others may get the answer
	read, save = read && !requested.NoCache && !anew, save && !requested.NoStore
	if !read && !save {
		return nil
	}
	lifetime := defaultAge
	switch {
	case age != nil && !anew:
		lifetime = *age
	case c != nil:
		lifetime = cmp.Or(time.Duration(c.MaxAge), defaultAge)
	}
	return &Options{
		Read: read, Save: save, MaxAge: lifetime, Lifetime: lifetime, Buckets: max(requested.Buckets, 1), Seed: requested.Seed, Ignore: requested.Ignore,
		Asked: on(requested.Enabled) || on(requested.Read) || on(requested.Save),
	}
}

func on(flag *bool) bool { return flag != nil && *flag }
