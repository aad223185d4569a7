package redis

import (
	"bytes"
	"context"
	"encoding/binary"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/storage/shared"
)

const (
	// affinitySlots bounds how many conversations are remembered. Each has some 200 bytes in Redis.
	affinitySlots = 1 << 18
	// affinityQueue is how many conversations of a node may wait for Redis. More are forgotten.
	affinityQueue = 1024
)

// affinity is where conversations are cached. A conversation has the slot of its hash, which a newer
// one may take.
type affinity struct {
	client *client
	queue  chan place
	stop   context.CancelFunc
	done   chan struct{}
}

// place is where a conversation is cached, and how long.
type place struct {
	conversation shared.Key
	value        []byte
	life         time.Duration
}

func newAffinity(c *client) *affinity {
	a := &affinity{client: c, queue: make(chan place, affinityQueue), done: make(chan struct{})}
	var ctx context.Context
	ctx, a.stop = context.WithCancel(context.Background())
	go a.run(ctx)
	return a
}

// Remember implements shared.Affinity.
func (a *affinity) Remember(conversation shared.Key, value []byte, life time.Duration) {
	select {
	case a.queue <- place{conversation, value, life}:
	default:
	}
}

// run sends Redis what is remembered.
func (a *affinity) run(ctx context.Context) {
	defer close(a.done)
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-a.queue:
			if !a.client.answers.Load() {
				continue // each call would wait for the timeout
			}
			_ = a.client.do(ctx, func(ctx context.Context, server rueidis.Client) error {
				value := rueidis.BinaryString(append(p.conversation[:], p.value...))
				return server.Do(ctx, server.B().Set().Key(a.slot(p.conversation)).Value(value).Px(p.life).Build()).Error()
			})
		}
	}
}

// Recall implements shared.Affinity.
func (a *affinity) Recall(ctx context.Context, conversations []shared.Key) (value []byte, n int) {
	if len(conversations) == 0 || !a.client.answers.Load() {
		return nil, -1
	}
	slots := make([]string, len(conversations))
	for i, c := range conversations {
		slots[i] = a.slot(c)
	}
	n = -1
	_ = a.client.do(ctx, func(ctx context.Context, server rueidis.Client) error {
		values, err := server.Do(ctx, server.B().Mget().Key(slots...).Build()).ToArray()
		for i := range values {
			text, err := values[i].ToString()
			if rest, ok := bytes.CutPrefix([]byte(text), conversations[i][:]); err == nil && ok {
				value, n = rest, i
				break
			}
		}
		return err
	})
	return value, n
}

func (a *affinity) slot(conversation shared.Key) string {
	return a.client.key("affinity:" + strconv.Itoa(int(binary.BigEndian.Uint64(conversation[:])%affinitySlots)))
}

func (a *affinity) close() {
	a.stop()
	<-a.done
}

// Interface guards
var _ shared.Affinity = (*affinity)(nil)
