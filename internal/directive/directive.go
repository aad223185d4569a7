// Package directive reads the blocks of Caddyfile directives. An option that is
// unknown, given twice or malformed is an error that says what is expected and where.
package directive

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/dustin/go-humanize"

	"github.com/weirhq/weir/internal/nearest"
)

// Option reads the arguments of an option. The dispenser is at the option's name.
type Option func(d *caddyfile.Dispenser) error

// Options are the options of a directive by name.
type Options map[string]Option

// Parse reads the block after the dispenser's line, if there is one.
func (o Options) Parse(d *caddyfile.Dispenser, directive string) error {
	return o.ParseWith(d, func(d *caddyfile.Dispenser) error { return o.Unknown(d, directive) })
}

// ParseWith is Parse, except that other reads the options that are not in the set.
func (o Options) ParseWith(d *caddyfile.Dispenser, other Option) error {
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		option, ok := o[d.Val()]
		if !ok {
			option = other
		}
		if err := option(d); err != nil {
			return err
		}
	}
	return nil
}

// Near returns the name in the set that is spelt almost like name, or "" if there is none.
func (o Options) Near(name string) string { return nearest.Name(name, slices.Sorted(maps.Keys(o))) }

// Directive reads a directive that has options and no arguments.
func (o Options) Directive(d *caddyfile.Dispenser) error {
	d.Next()
	directive := d.Val()
	if d.NextArg() {
		return d.Errf("%s takes a matcher and a block of options, not '%s'", directive, d.Val())
	}
	return o.Parse(d, directive)
}

// Unknown returns the error for an option that is not in the set.
func (o Options) Unknown(d *caddyfile.Dispenser, directive string) error {
	if near := o.Near(d.Val()); near != "" {
		return d.Errf("%s has no option '%s'; did you mean %s?", directive, d.Val(), near)
	}
	if len(o) == 0 {
		return d.Errf("%s has no option '%s', and no others", directive, d.Val())
	}
	return d.Errf("%s has no option '%s'; its options are %s", directive, d.Val(), strings.Join(slices.Sorted(maps.Keys(o)), ", "))
}

// Text reads one value. Errors do not repeat it: it may be a secret.
func Text(to *string) Option {
	return func(d *caddyfile.Dispenser) error {
		name := d.Val()
		if *to != "" {
			return d.Errf("%s is given twice", name)
		}
		if args := d.RemainingArgs(); len(args) != 1 || args[0] == "" {
			return d.Errf("%s takes one value, not %s; put a value with blanks in quotes", name, number(args))
		} else {
			*to = args[0]
		}
		return nil
	}
}

func number(args []string) string {
	if len(args) == 1 {
		return "an empty one"
	}
	return strconv.Itoa(len(args))
}

// Texts reads one or more values. It may be given again with more.
func Texts(to *[]string) Option {
	return func(d *caddyfile.Dispenser) error {
		name, args := d.Val(), d.RemainingArgs()
		if len(args) == 0 {
			return d.Errf("%s takes one value or more", name)
		}
		*to = append(*to, args...)
		return nil
	}
}

// Choices reads one or more of the words. It may be given again with more.
func Choices(to *[]string, words ...string) Option {
	return func(d *caddyfile.Dispenser) error {
		name, args := d.Val(), d.RemainingArgs()
		for _, arg := range args {
			if !slices.Contains(words, arg) {
				return d.Errf("%s takes %s, not '%s'", name, strings.Join(words, " or "), arg)
			}
		}
		if len(args) == 0 {
			return d.Errf("%s takes %s", name, strings.Join(words, " or "))
		}
		*to = append(*to, args...)
		return nil
	}
}

// Choice reads one of the words.
func Choice(to *string, words ...string) Option {
	return value(strings.Join(words, " or "), func(arg string) bool {
		*to = arg
		return slices.Contains(words, arg)
	})
}

// Switch reads on or off.
func Switch(to *bool) Option {
	return value("on or off", func(arg string) bool {
		*to = arg == "on"
		return *to || arg == "off"
	})
}

// Flag is on when it is given, and takes no value.
func Flag(to *bool) Option {
	return func(d *caddyfile.Dispenser) error {
		if name := d.Val(); d.NextArg() {
			return d.Errf("%s takes no value, not even '%s'", name, d.Val())
		}
		*to = true
		return nil
	}
}

// Duration reads a length of time.
func Duration(to *caddy.Duration) Option {
	return value("a duration such as 30s, 12h or 90d", func(arg string) bool {
		duration, err := caddy.ParseDuration(arg)
		*to = caddy.Duration(duration)
		return err == nil && duration > 0
	})
}

// Number reads a whole number.
func Number(to **int) Option {
	return value("a whole number of 0 or more", func(arg string) bool {
		n, err := strconv.Atoi(arg)
		*to = &n
		return err == nil && n >= 0
	})
}

// Positive reads a whole number above 0.
func Positive(to *int) Option {
	return value("a whole number of 1 or more", func(arg string) bool {
		n, err := strconv.Atoi(arg)
		*to = n
		return err == nil && n >= 1
	})
}

// Bytes reads a Size.
func Bytes(to *Size) Option {
	return value(sizes, func(arg string) bool {
		n, err := humanize.ParseBytes(arg)
		*to = Size(n)
		return err == nil && to.valid()
	})
}

// value reads one value and sets it with take, which returns false if the value is invalid. want
// describes the valid values.
func value(want string, take func(arg string) bool) Option {
	given := false
	return func(d *caddyfile.Dispenser) error {
		name, args := d.Val(), d.RemainingArgs()
		if given {
			return d.Errf("%s is given twice", name)
		}
		given = true
		if len(args) == 0 {
			return d.Errf("%s takes %s", name, want)
		}
		if len(args) > 1 || !take(args[0]) {
			return d.Errf("%s takes %s, not '%s'", name, want, strings.Join(args, " "))
		}
		return nil
	}
}

// Size is a number of bytes, from 1 to a tebibyte. There is no 0: to have no limit, an
// operator leaves the option out.
type Size int64

const (
	maxSize = 1 << 40
	sizes   = "a size such as 512KiB or 8MiB, of 1 byte or more"
)

func (s Size) valid() bool { return 1 <= s && s <= maxSize }

// UnmarshalJSON reads a number of bytes.
func (s *Size) UnmarshalJSON(text []byte) error {
	var n int64
	if err := json.Unmarshal(text, &n); err != nil {
		return err
	}
	if *s = Size(n); !s.valid() {
		return fmt.Errorf("%d bytes: want 1 or more, and no more than %d", n, int64(maxSize))
	}
	return nil
}
