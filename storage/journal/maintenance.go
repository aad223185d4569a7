package journal

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

// maintainEvery is how often maintenance looks at what has become old.
const maintainEvery = time.Minute

// eraseEvery is how often the backend removes from its files what was deleted.
const eraseEvery = time.Hour

// eraseUnusedEvery is how often it also removes what only deleted records have needed, if holds
// made retention delete single records.
const eraseUnusedEvery = 24 * time.Hour

// maintenance is what seals and deletes. Its own goroutine alone uses what no other comment says.
type maintenance struct {
	j *Journal

	wake   chan struct{}
	stop   context.CancelFunc
	ended  chan struct{} // closed when it has ended, and nothing is synced any more
	turn   chan struct{} // has an element while maintenance or a backup runs
	erased time.Time     // when the backend erased last
	// sealer seals the segments of all passes. Who has the turn uses it.
	sealer sealer
	// retention is the last run of retention that ended well, nil before the first.
	retention *retention
	// unused is true if single records were deleted since the backend last erased what only they
	// needed, at unusedErased.
	unused       bool
	unusedErased time.Time
	// restoring is true if the database was not opened after its file was written again.
	restoring bool
}

// run seals segments and deletes what has outlived its retention.
func (m *maintenance) run(ctx context.Context) {
	tick := time.NewTicker(maintainEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-m.wake:
		}
		m.pass(ctx)
		m.j.erasures.run(ctx)
		m.makeGrams(ctx)
	}
}

// takeTurn waits for a backup or maintenance that is running. It is false if ctx ends first.
func (m *maintenance) takeTurn(ctx context.Context) bool {
	select {
	case m.turn <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (m *maintenance) giveTurn() { <-m.turn }

// pass deletes before it seals: deleting needs no room. It waits for a
// backup, which copies the segments.
func (m *maintenance) pass(ctx context.Context) {
	if !m.takeTurn(ctx) {
		return
	}
	defer m.giveTurn()
	m.retire()
	m.restoreDatabase(ctx)
	o := m.j.options.Load()
	now := o.now()
	content, records := cutoff(now, o.contentRetention()), cutoff(now, o.Retention)
	run, err := m.newRetention(ctx, now, max(content, records))
	if err == nil && run != nil {
		err = run.expire(ctx, content)
	}
	m.j.witness.checkSealed()
	m.sealer.noContent, m.sealer.erased = m.j.Shared(), m.j.erasures.records.Load()
	if m.sealer.noContent {
		m.dropContent(ctx)
	}
	for _, s := range m.deliveredSegments() {
		if err := m.seal(ctx, &m.sealer, s); err != nil && ctx.Err() == nil {
			o.Logger.Error("a segment cannot be sealed: it stays as it is until it can", zap.String("file", s.path), zap.Error(err))
		}
	}
	if err == nil && run != nil {
		err = run.prune(ctx, content, records)
	}
	switch {
	case err == nil && run != nil:
		m.retention = run
	case err != nil && ctx.Err() == nil && !errors.Is(err, errHoldsChanged) && !errors.Is(err, storage.ErrUnavailable):
		o.Logger.Error("what has outlived its retention cannot be deleted: it is tried again", zap.Error(err))
	}
	m.erase(ctx)
}

// retire looks after the directory, and closes the active segment when it is old,
// if nothing is appended that would.
func (m *maintenance) retire() {
	o := m.j.options.Load()
	m.j.log.turn.Lock()
	defer m.j.log.turn.Unlock()
	if err := m.j.checkDirectory(); err != nil {
		o.Logger.Error("the journal cannot be written", zap.Error(err))
	}
	m.j.witness.checkOthers()
	if s := m.j.log.active; s != nil && s.entries > 0 && o.now().Sub(s.opened) >= o.age() {
		m.j.log.close(s)
	}
}

// restoreDatabase has the backend write its file again that somebody has deleted while it is open.
func (m *maintenance) restoreDatabase(ctx context.Context) {
	restorer, ok := m.j.backend.(storage.FileRestorer)
	path, isFile := strings.CutSuffix(m.j.dir, directorySuffix)
	if !ok || !isFile || !m.j.delivery.isConnected() {
		return
	}
	if _, err := os.Stat(path); !m.restoring && !errors.Is(err, fs.ErrNotExist) {
		return
	}
	m.j.delivery.writer.Lock()
	err := restorer.RestoreFile(ctx)
	m.j.delivery.writer.Unlock()
	if m.restoring = err != nil; m.restoring {
		m.j.witness.tellDatabase("was deleted, and is lost at the latest when Weir stops, because it cannot be written again: " + err.Error())
	} else {
		m.j.witness.tellDatabase("was deleted, and was written again from what Weir had open: nothing of it is lost")
	}
}

// erase removes what was deleted from the backend's files, and tries again a minute later
// if that fails.
func (m *maintenance) erase(ctx context.Context) {
	o := m.j.options.Load()
	if o.now().Sub(m.erased) < eraseEvery {
		return
	}
	var err error
	if eraser, ok := m.j.backend.(storage.RecordEraser); ok && m.unused && o.now().Sub(m.unusedErased) >= eraseUnusedEvery {
		o.LowPriority(func() { err = eraser.EraseUnused(ctx) })
		m.unused, m.unusedErased = err != nil, o.now()
	}
	if err = cmp.Or(err, m.eraseFiles(ctx)); err != nil && ctx.Err() == nil && !errors.Is(err, storage.ErrUnavailable) {
		o.Logger.Warn("deleted texts are still in the backend's files", zap.Error(err))
	}
}

func (m *maintenance) eraseFiles(ctx context.Context) error {
	eraser, ok := m.j.backend.(storage.Eraser)
	if !ok {
		return nil
	}
	err := m.inSteps(ctx, func() (bool, error) { return eraser.Erase(ctx) })
	if err == nil {
		m.erased = m.j.options.Load().now()
	}
	return err
}

// inSteps lets the backend delete in steps, between which batches can be written.
func (m *maintenance) inSteps(ctx context.Context, step func() (more bool, err error)) error {
	for {
		m.j.delivery.writer.Lock()
		more, err := step()
		m.j.delivery.writer.Unlock()
		if err = cmp.Or(err, ctx.Err()); err != nil || !more {
			return err
		}
	}
}

// dropContent deletes the content that earlier versions of Weir have sealed, although the backend
// keeps it.
func (m *maintenance) dropContent(ctx context.Context) {
	var w rewriter
	for number, s := range m.j.archive.all() {
		if s.Size == 0 {
			continue
		}
		if err := m.j.archive.rewrite(ctx, &w, number, func(uint32) bool { return true }); err != nil && ctx.Err() == nil {
			m.j.options.logger().Error("content that the backend keeps cannot be deleted here", zap.String("file", segmentPath(m.j.dir, number, sealedSuffix)), zap.Error(err))
		}
	}
}

// seal puts the content of a segment into the archive, and deletes the segment.
func (m *maintenance) seal(ctx context.Context, z *sealer, s *segment) error {
	if err := m.j.archive.seal(ctx, z, s); err != nil {
		return err
	}
	return m.drop(s)
}

// drop removes a raw segment that is sealed or has outlived its retention. The witness no longer
// has the segment before the file is gone.
func (m *maintenance) drop(s *segment) error {
	leave := func(leaving bool) {
		m.j.mu.Lock()
		s.leaving = leaving
		m.j.mu.Unlock()
		_ = m.j.saveReach(leaving)
	}
	leave(true)
	err := m.j.log.drop(s)
	if err != nil {
		leave(false)
	} else {
		m.j.archive.forgetRaw(s.number)
	}
	return err
}

// deliveredSegments lists the raw segments that the backend has taken whole. It lists no segment before
// the backend is open: then the backend may prove to have less than before. It lists none before
// the ledger has read the charges of all, and none while the ledger cannot be synced: nobody can
// charge again from a segment that is sealed or deleted.
func (m *maintenance) deliveredSegments() []*segment {
	if !m.j.delivery.isConnected() {
		return nil
	}
	m.j.mu.Lock()
	if m.j.awaitsLedger {
		m.j.mu.Unlock()
		return nil
	}
	i, _ := m.j.log.find(m.j.delivery.position.Segment)
	segments := m.j.versions.held.segments()
	list := slices.DeleteFunc(slices.Clone(m.j.log.unsealed[:i]), func(s *segment) bool { return segments[s.number] })
	m.j.mu.Unlock()
	if _, synced := m.j.witness.syncOthers(); !synced {
		return nil
	}
	return list
}

// drop removes a raw segment. Whoever reads the segment may go on.
func (l *log) drop(s *segment) error {
	if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unsealed = slices.DeleteFunc(l.unsealed, func(r *segment) bool { return r == s })
	l.unref(s)
	return nil
}
