package redis

import (
	"context"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/storage/shared"
)

// refreshInterval is how late a node learns which circuits others have opened.
const refreshInterval = time.Second

// breakers are a node's copy of the circuits that any node has opened. They are in a
// sorted set, by the time until which they are open.
type breakers struct {
	shared.LocalBreakers
	client *client

	mu sync.Mutex // guards changed
	// changed are the circuits that this node has opened or closed, and that Redis does not
	// have yet. The value is until when a circuit is open, the zero time for a closed circuit.
	changed map[shared.Key]time.Time

	wake chan struct{} // something has changed
	stop context.CancelFunc
	done chan struct{}
}

func newBreakers(c *client) *breakers {
	b := &breakers{client: c, changed: make(map[shared.Key]time.Time), wake: make(chan struct{}, 1), done: make(chan struct{})}
	var ctx context.Context
	ctx, b.stop = context.WithCancel(context.Background())
	go b.run(ctx)
	return b
}

// Failed implements shared.Breakers.
func (b *breakers) Failed(circuit shared.Key) {
	if b.Fail(circuit) {
		b.enqueue(circuit, time.Now().Add(shared.Cooldown))
	}
}

// Succeeded implements shared.Breakers.
func (b *breakers) Succeeded(circuit shared.Key) {
	if b.Open(circuit) {
		b.enqueue(circuit, time.Time{})
	}
	b.LocalBreakers.Succeeded(circuit)
}

// enqueue keeps a change for the next refresh to send to Redis.
func (b *breakers) enqueue(circuit shared.Key, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.changed) >= shared.MaxCircuits {
		return
	}
	b.changed[circuit] = until
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// run refreshes the copy. Whether Redis answers decides what the memory does.
func (b *breakers) run(ctx context.Context) {
	defer close(b.done)
	tick := time.NewTicker(refreshInterval)
	defer tick.Stop()
	for {
		err := b.refresh(ctx)
		if ctx.Err() != nil {
			return
		}
		b.client.answers.Store(err == nil)
		if err != nil {
			b.client.Alone("breakers")
		}
		wake := b.wake
		if err != nil {
			wake = nil // until the next tick
		}
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-tick.C:
		}
	}
}

// refresh sends Redis what has changed, and reads what is open.
func (b *breakers) refresh(ctx context.Context) error {
	if err := b.client.connect(); err != nil {
		return err
	}
	now := time.Now()
	b.mu.Lock()
	maps.DeleteFunc(b.changed, func(_ shared.Key, until time.Time) bool { return !until.IsZero() && until.Before(now) })
	sent := maps.Clone(b.changed)
	b.mu.Unlock()
	args := []string{strconv.Itoa(shared.MaxCircuits)}
	for circuit, until := range sent {
		left := "0"
		if !until.IsZero() {
			left = milliseconds(until.Sub(now))
		}
		args = append(args, string(circuit[:]), left)
	}
	open := make(map[shared.Key]time.Time)
	err := b.client.do(ctx, func(ctx context.Context, server rueidis.Client) error {
		reply, err := refresh.Exec(ctx, server, []string{b.client.key("breakers")}, args).AsStrSlice()
		for i := 0; i+1 < len(reply); i += 2 {
			left, _ := strconv.ParseInt(reply[i+1], 10, 64)
			open[shared.Key([]byte(reply[i]))] = now.Add(time.Duration(left) * time.Millisecond)
		}
		return err
	})
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for circuit, until := range sent {
		if b.changed[circuit].Equal(until) {
			delete(b.changed, circuit)
		}
	}
	for circuit, until := range b.changed { // meanwhile
		open[circuit] = until
	}
	b.Replace(open)
	return nil
}

func (b *breakers) close() {
	b.stop()
	<-b.done
}

// refresh opens and closes the circuits in ARGV. Each circuit is followed by how many
// milliseconds it is open, 0 to close it. It returns up to ARGV[1] open circuits in the same
// form.
var refresh = rueidis.NewLuaScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 2, #ARGV, 2 do
	if ARGV[i + 1] == '0' then
		redis.call('ZREM', KEYS[1], ARGV[i])
	else
		redis.call('ZADD', KEYS[1], 'GT', now + ARGV[i + 1], ARGV[i])
	end
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local open = redis.call('ZREVRANGE', KEYS[1], 0, ARGV[1] - 1, 'WITHSCORES')
for i = 2, #open, 2 do open[i] = string.format('%.0f', open[i] - now) end
return open`)

// Interface guards
var _ shared.Breakers = (*breakers)(nil)
