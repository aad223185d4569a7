package redis

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

// run renews the lease, ends the reservations of dead nodes, and writes what waits.
func (l *Ledger) run(ctx context.Context) {
	defer close(l.done)
	failing := false
	for {
		err := l.renew(ctx)
		next := l.client.Lease / 12
		if err != nil { // a live node must not lose its lease because one command was late
			next = l.client.Lease / 60
		}
		if ctx.Err() != nil {
			return
		}
		if failed := err != nil; failed != failing {
			failing = failed
			if failed {
				l.client.Logger.Error("the credits in Redis cannot be used: nothing can be spent beyond the allowance", zap.Error(err))
			} else {
				l.client.Logger.Info("the credits in Redis can be used again")
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
	}
}

func (l *Ledger) renew(ctx context.Context) error {
	if err := l.client.connect(); err != nil {
		l.couldNotRenew()
		return unavailable(err)
	}
	if err := l.meet(ctx); err != nil {
		l.couldNotRenew()
		return err
	}
	var nodes []string
	err := l.client.do(ctx, func(ctx context.Context, server rueidis.Client) (err error) {
		for _, reply := range server.DoMulti(ctx,
			server.B().Set().Key(l.client.key("lease:"+l.node)).Value("").Px(l.client.Lease).Build(),
			server.B().Sadd().Key(l.client.key("nodes")).Member(l.node).Build(),
			server.B().Smembers().Key(l.client.key("nodes")).Build(),
		) {
			if err := reply.Error(); err != nil {
				return err
			}
			nodes, _ = reply.AsStrSlice()
		}
		return nil
	})
	if err != nil {
		l.couldNotRenew()
		return err
	}
	wasAway := l.wasAway()
	for _, node := range nodes {
		if node != l.node && !wasAway {
			if err := l.expire(ctx, node); err != nil {
				return err
			}
		}
	}
	return l.flush(ctx)
}

// couldNotRenew notes that Redis was away, from this node at least. Other nodes may have
// lost their leases meanwhile although they live: this node waits for them as long as a lease.
func (l *Ledger) couldNotRenew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewFailed = time.Now()
}

// wasAway reports whether Redis was away within the last lease.
func (l *Ledger) wasAway() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.renewFailed) < l.client.Lease
}

// tombstone is how long a reservation is remembered after its node seemed dead: a node that is
// back within this time settles what its calls have cost.
const tombstone = 7 * 24 * time.Hour

// expire frees what a node has reserved, unless it has a lease.
func (l *Ledger) expire(ctx context.Context, node string) error {
	keys := []string{l.client.key("lease:" + node), l.reservations(node), l.client.key("nodes")}
	for {
		left, err := l.client.run(ctx, expire, keys, node, l.org(""))
		if err != nil || left == 0 {
			return err
		}
	}
}

// nodeUntil names a node that dies at a time: this node has the reservations that last until
// the time, whichever other nodes live.
func nodeUntil(at storage.Timestamp) string { return "until:" + strconv.FormatInt(int64(at), 10) }

// outlive gives the node that dies at a time its lease.
func (l *Ledger) outlive(ctx context.Context, until storage.Timestamp) error {
	return l.client.do(ctx, func(ctx context.Context, server rueidis.Client) error {
		for _, reply := range server.DoMulti(ctx,
			server.B().Set().Key(l.client.key("lease:"+nodeUntil(until))).Value("").PxatMillisecondsTimestamp(int64(until)).Build(),
			server.B().Sadd().Key(l.client.key("nodes")).Member(nodeUntil(until)).Build(),
		) {
			if err := reply.Error(); err != nil {
				return err
			}
		}
		return nil
	})
}

// end gives up the lease and what is reserved.
func (l *Ledger) end(ctx context.Context) error {
	err := l.client.do(ctx, func(ctx context.Context, server rueidis.Client) error {
		return server.Do(ctx, server.B().Del().Key(l.client.key("lease:"+l.node)).Build()).Error()
	})
	if err != nil {
		return err
	}
	return l.expire(ctx, l.node)
}
