package control

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/plugins"
)

// Cache is what the caller says of Weir's cache.
type Cache struct {
	// Enabled switches reading and saving; Read and Save win over it. nil: nothing is said.
	Enabled, Read, Save *bool
	// Seed separates answers, Ignore are the fields of the body that do not, in order.
	Seed   string
	Ignore []string
	// Buckets is how many answers to equal requests are kept, 0 if nothing is said.
	Buckets int
	// MaxAge is how old an answer may be, and how long one is kept; nil: nothing is said.
	MaxAge *time.Duration
	// NoCache asks the provider anew. NoStore keeps nothing, too.
	NoCache, NoStore bool

	control string // of the control header, which wins over Cache-Control
}

// The bounds of what callers may say of the cache.
const (
	MaxBuckets  = 20
	MaxCacheAge = 365 * 24 * time.Hour
)

// cacheHeaders read the headers of the cache. Several prefixes may say the same thing: the first
// counts.
var cacheHeaders = map[string]func(c *Controls, key string, values []string){
	"Cache-Enabled": func(c *Controls, key string, values []string) { c.toggle(&c.Cache.Enabled, key, values) },
	"Cache-Read":    func(c *Controls, key string, values []string) { c.toggle(&c.Cache.Read, key, values) },
	"Cache-Save":    func(c *Controls, key string, values []string) { c.toggle(&c.Cache.Save, key, values) },
	"Cache-Seed":    func(c *Controls, key string, values []string) { c.text(&c.Cache.Seed, key, values) },
	"Cache-Control": func(c *Controls, key string, values []string) { c.text(&c.Cache.control, key, values) },
	"Cache-Ignore-Keys": func(c *Controls, key string, values []string) {
		for name := range strings.SplitSeq(strings.Join(values, ","), ",") {
			switch name = strings.TrimSpace(name); name {
			case "":
			case "model", "stream":
				c.Warn(key, name+" is not ignored: it decides what the answer is")
			default:
				c.Cache.Ignore = append(c.Cache.Ignore, name)
			}
		}
		slices.Sort(c.Cache.Ignore)
		c.Cache.Ignore = slices.Compact(c.Cache.Ignore)
	},
	"Cache-Bucket-Max-Size": func(c *Controls, key string, values []string) {
		n, err := strconv.Atoi(values[0])
		switch {
		case err != nil || n < 1:
			c.Refused = plugins.Invalid(key, "%s is a number from 1 to %d.", key, MaxBuckets)
		case n > MaxBuckets:
			c.Refused = plugins.Invalid(key, "Cache bucket size cannot be greater than %d.", MaxBuckets)
		case c.Cache.Buckets == 0:
			c.Cache.Buckets = n
		}
	},
}

// toggle reads a header that switches something on or off.
func (c *Controls) toggle(to **bool, key string, values []string) {
	switch on := strings.EqualFold(values[0], "true"); {
	case !on && !strings.EqualFold(values[0], "false"):
		c.Warn(key, "ignored, write true or false")
	case *to == nil:
		*to = &on
	}
}

// readCacheControl reads how old an answer may be, of our header or else of the request's own
// (RFC 9111, section 5.2.1). s-maxage is taken, too, as other gateways do.
func (c *Controls) readCacheControl(header []string) {
	text := c.Cache.control
	if text == "" {
		text = strings.Join(header, ",")
	}
	if text == "" {
		return
	}
	shared := false
	for part := range strings.SplitSeq(strings.ToLower(text), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "no-cache":
			c.Cache.NoCache = true
		case "no-store":
			c.Cache.NoCache, c.Cache.NoStore = true, true
		case "max-age", "s-maxage":
			seconds, err := strconv.ParseInt(strings.Trim(value, `"`), 10, 64)
			if err != nil || seconds < 0 {
				if c.Cache.control != "" { // else it is the provider's to say
					c.Warn("Service-Cache-Control", name+" is ignored, it is no number of seconds")
				}
				continue
			}
			if shared = shared || name == "s-maxage"; name == "max-age" && shared {
				continue
			}
			age := time.Duration(min(seconds, int64(MaxCacheAge/time.Second))) * time.Second
			c.Cache.MaxAge = &age
		}
	}
}
