package embedded

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

// useInterval is how often it is written when objects were used.
const useInterval = time.Minute

// uses are when objects were last used, by id, until it is written.
type uses struct {
	log  *Log
	mu   sync.Mutex
	last map[string]storage.Timestamp
	stop context.CancelFunc
	done chan struct{}
}

// Used implements control.Log.
func (l *Log) Used(id string, at storage.Timestamp) {
	l.used.mu.Lock()
	defer l.used.mu.Unlock()
	l.used.last[id] = at
}

func (u *uses) begin(l *Log) {
	u.log, u.last, u.done = l, make(map[string]storage.Timestamp), make(chan struct{})
	var ctx context.Context
	ctx, u.stop = context.WithCancel(context.Background())
	go func() {
		defer close(u.done)
		ticker := time.NewTicker(useInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				u.write()
			case <-ctx.Done():
				u.write()
				return
			}
		}
	}()
}

func (u *uses) end() {
	u.stop()
	<-u.done
}

func (u *uses) write() {
	u.mu.Lock()
	last := u.last
	u.last = make(map[string]storage.Timestamp)
	u.mu.Unlock()
	if len(last) == 0 {
		return
	}
	u.log.mu.Lock()
	defer u.log.mu.Unlock()
	err := func() error {
		tx, err := u.log.db.Begin()
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // does nothing after Commit
		for id, at := range last {
			if _, err := tx.Exec("UPDATE objects SET used_at = ? WHERE id = ?", int64(at), id); err != nil {
				return err
			}
		}
		return tx.Commit()
	}()
	if err != nil {
		u.log.logger.Error("when keys were last used is not kept", zap.Error(err))
	}
}
