package redis

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins"
)

// Options configure how a store uses Redis.
type Options struct {
	// URL is the server's address: redis://user:password@host:port/database, or
	// rediss:// for TLS.
	URL string
	// Store is the name of what the nodes share. All nodes have the same.
	Store string
	// File is this node's file of the charges that Redis does not have yet, which survives the
	// process. Its directory must exist.
	File string
	// Lease is how long the reservations of a node last after its death. Default: 1 minute.
	Lease time.Duration
	// Timeout bounds each command. Default: 2 s, which is enough for a server that is only busy.
	Timeout time.Duration
	// Allowance is what each organisation may spend through this node while Redis
	// cannot be reached. It is charged when it can. Default: nothing.
	Allowance plugins.Nanodollars
	// Lent, if not nil, is called with each amount that is reserved from the allowance.
	Lent func(plugins.Nanodollars)
	// Alone, if not nil, is called when the node does without Redis: for each use of the memory,
	// and each second for the breakers. part is `memory` or `breakers`.
	Alone func(part string)
	// Logger logs when Redis cannot be reached.
	Logger *zap.Logger
}

// client is a node's connection for one store.
type client struct {
	Options
	config rueidis.ClientOption

	dialing sync.Mutex                     // held by connect
	server  atomic.Pointer[rueidis.Client] // nil until connect succeeds

	// answers is true if the server answered the last command. While it is false, a node does
	// what it can do alone at once, without a command that would wait.
	answers atomic.Bool
}

func newClient(o Options) (*client, error) {
	config, err := rueidis.ParseURL(o.URL)
	if err != nil {
		return nil, err
	}
	if o.Lease == 0 {
		o.Lease = time.Minute
	}
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Second
	}
	if o.Lent == nil {
		o.Lent = func(plugins.Nanodollars) {}
	}
	if o.Alone == nil {
		o.Alone = func(string) {}
	}
	config.ForceSingleClient = true
	config.DisableCache = true
	config.DisableRetry = true // a grant must not be added twice
	config.AlwaysPipelining = true
	config.Dialer.Timeout, config.ConnWriteTimeout = o.Timeout, o.Timeout
	return &client{Options: o, config: config}, nil
}

// connect connects for the first time. After that, the client reconnects by itself.
func (c *client) connect() error {
	c.dialing.Lock()
	defer c.dialing.Unlock()
	if c.server.Load() != nil {
		return nil
	}
	server, err := rueidis.NewClient(c.config)
	if err == nil {
		c.server.Store(&server)
	}
	return err
}

var (
	errNotConnected = errors.New("not connected yet")
	errNoAnswer     = errors.New("the last command had no answer of Redis")
)

// do calls f with the server and a context that ends after Timeout.
func (c *client) do(ctx context.Context, f func(context.Context, rueidis.Client) error) error {
	bounded, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	server, err := c.server.Load(), errNotConnected
	if server != nil {
		err = f(bounded, *server)
	}
	if _, replied := rueidis.IsRedisErr(err); err == nil || replied {
		c.answers.Store(true)
	} else if ctx.Err() == nil {
		c.answers.Store(false)
	}
	if err != nil {
		return unavailable(err)
	}
	return nil
}

// run runs a script that returns a number. It never repeats it.
func (c *client) run(ctx context.Context, s *rueidis.Lua, keys []string, args ...string) (n int64, err error) {
	err = c.do(ctx, func(ctx context.Context, server rueidis.Client) error {
		n, err = s.Exec(ctx, server, keys, args).AsInt64()
		return err
	})
	return n, err
}

// key returns the key in Redis for a name of the store.
func (c *client) key(name string) string { return "weir:{" + c.Store + "}:" + name }

func (c *client) close() {
	if server := c.server.Swap(nil); server != nil {
		(*server).Close()
	}
}

func number(n plugins.Nanodollars) string { return strconv.FormatInt(int64(n), 10) }
