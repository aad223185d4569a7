package embedded

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// useInterval is how often it is written when objects were used.
const useInterval = time.Minute

// keepUse writes when objects were last used, until ctx ends.
func (l *Log) keepUse(ctx context.Context) {
	defer close(l.done)
	ticker := time.NewTicker(useInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			l.writeUse()
		case <-ctx.Done():
			l.writeUse()
			return
		}
	}
}

func (l *Log) writeUse() {
	last := l.Take()
	if len(last) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	err := func() error {
		tx, err := l.db.Begin()
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
		l.logger.Error("when keys were last used is not kept", zap.Error(err))
	}
}
