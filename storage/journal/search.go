package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

// makeGrams makes the grams of the newest sealed segment without, and then lets other maintenance go
// before the next.
func (m *maintenance) makeGrams(ctx context.Context) {
	var b gramsBuilder
	for _, number := range m.j.archive.withoutGrams() {
		if !m.takeTurn(ctx) {
			return
		}
		var err error
		m.j.options.Load().LowPriority(func() { err = m.j.archive.makeGrams(ctx, &b, number) })
		m.giveTurn()
		if err == nil {
			signal(m.wake)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		m.j.options.logger().Warn("searches read all content of a segment, since its grams cannot be made: it is tried again", zap.Uint64("segment", number), zap.Error(err))
		if !errors.Is(err, errSealed) && !errors.Is(err, fs.ErrNotExist) {
			return // nothing can be written, perhaps
		}
	}
}

// withoutGrams lists the segments that may lack grams.
func (a *archive) withoutGrams() (numbers []uint64) {
	a.mu.Lock()
	for number, s := range a.segments {
		if s.Size > 0 && s.Lost < s.Entries && !a.grams[number] {
			numbers = append(numbers, number)
		}
	}
	a.mu.Unlock()
	slices.Sort(numbers)
	slices.Reverse(numbers)
	return numbers
}

// makeGrams makes the grams of a segment, unless they are there. It needs the turn of maintenance.
func (a *archive) makeGrams(ctx context.Context, b *gramsBuilder, number uint64) error {
	g, err := a.openGrams(number)
	if err == nil {
		g.file.Close()
	} else if err = b.build(ctx, segmentPath(a.dir, number, sealedSuffix), segmentPath(a.dir, number, gramsSuffix)); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, there := a.segments[number]; there {
		a.grams[number] = true
	}
	return nil
}

// removeGrams removes the grams of a segment, which nobody may need any more once its entries are
// gone.
func (a *archive) removeGrams(number uint64) error {
	a.mu.Lock()
	delete(a.grams, number)
	a.mu.Unlock()
	if err := os.Remove(segmentPath(a.dir, number, gramsSuffix)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// errNoGrams tells a missing file of grams from a missing segment.
var errNoGrams = errors.New("there are no grams")

// openGrams opens the grams of a segment, which must be those of its file.
func (a *archive) openGrams(number uint64) (*openGrams, error) {
	f, size, err := openSealed(segmentPath(a.dir, number, sealedSuffix))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	index, err := readIndex(f, size)
	if err != nil {
		return nil, err
	}
	path := segmentPath(a.dir, number, gramsSuffix)
	file, err := OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", errNoGrams, err)
	}
	if err != nil {
		return nil, err
	}
	g, err := readGrams(file, index)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("%s %w", path, err)
	}
	return &openGrams{g, index, file}, nil
}

// openGrams are grams with the index of their segment.
type openGrams struct {
	*grams
	index *sealedIndex
	file  *os.File
}

// Search implements storage.ContentSearcher.
func (j *Journal) Search(f storage.Filter) storage.ContentSearch {
	s := &contentSearch{j: j, filter: f, rows: make(map[*storage.Leaf][][]uint32)}
	for l := range storage.Leaves(f) {
		for _, text := range storage.RequiredTexts(l) {
			if rows := searchedRows(text); rows != nil {
				s.rows[l] = append(s.rows[l], rows)
			}
		}
	}
	return s
}

// contentSearch implements storage.ContentSearch.
type contentSearch struct {
	j      *Journal
	filter storage.Filter
	// rows are the rows of the texts that each leaf requires.
	rows map[*storage.Leaf][][]uint32
}

// Candidates implements storage.ContentSearch.
func (s *contentSearch) Candidates(segment uint64) func(ordinal uint32) bool {
	all := func(uint32) bool { return true }
	if len(s.rows) == 0 {
		return all
	}
	s.j.mu.Lock()
	_, raw := s.j.log.find(segment)
	s.j.mu.Unlock()
	if raw {
		return all
	}
	bare, _ := s.find(s.filter, nil, 1) // empty if the filter needs content
	if !s.j.archive.has(segment) {      // without any content
		if bare.empty() {
			return nil
		}
		return all
	}
	g, err := s.j.archive.openGrams(segment)
	if err == nil {
		defer g.file.Close()
		var found bitSet
		if found, err = s.find(s.filter, g.grams, len(g.index.blocks)); err == nil {
			return g.index.among(found, !bare.empty())
		}
	}
	if err != nil && s.j.archive.dropGrams(segment, err) {
		signal(s.j.maintenance.wake)
	}
	return all
}

// among reports of entries whether they are in one of some blocks, or, if bare is true, in none:
// erased content is in none, and damaged content. It is nil if it is true of no entry.
func (x *sealedIndex) among(blocks bitSet, bare bool) func(ordinal uint32) bool {
	if blocks.empty() && !bare {
		return nil
	}
	return func(ordinal uint32) bool {
		block, there := x.at(ordinal)
		return there && blocks.has(block) || !there && bare
	}
}

// find returns the blocks that a filter can match. Without grams, the blocks have no texts.
func (s *contentSearch) find(f storage.Filter, g *grams, blocks int) (found bitSet, err error) {
	found = newBitSet(blocks)
	switch f := f.(type) {
	case *storage.Branch:
		var right bitSet
		if found, err = s.find(f.Left, g, blocks); err != nil || !f.Or && found.empty() {
			return found, err
		}
		if right, err = s.find(f.Right, g, blocks); f.Or {
			found.or(right)
		} else {
			found.and(right)
		}
		return found, err
	case *storage.Leaf:
		if texts := s.rows[f]; g == nil && texts != nil {
			return found, nil
		} else if texts != nil {
			return g.find(f.Field.Content, texts)
		}
	}
	for block := range blocks {
		found.set(block)
	}
	return found, nil
}

// find returns the blocks that may have some texts in a part of the content, by the texts' rows.
func (g *grams) find(content storage.ContentPart, texts [][]uint32) (bitSet, error) {
	found := newBitSet(g.blocks)
	found.setAll()
	part := slices.IndexFunc(parts[:], func(p part) bool { return p.is == content })
	for _, rows := range texts {
		for _, row := range rows {
			with, err := g.row(part, row)
			if err != nil {
				return nil, err
			}
			if found.and(with); found.empty() {
				return found, nil
			}
		}
	}
	return found, nil
}

// dropGrams forgets the grams of a segment if a search has found them damaged or gone, so that they
// are made again. It reports false if they are as they were, or not made yet.
func (a *archive) dropGrams(number uint64, found error) bool {
	a.mu.Lock()
	gone := a.grams[number] && errors.Is(found, errNoGrams)
	a.mu.Unlock()
	if !gone && !errors.Is(found, errGrams) && !errors.Is(found, errDamaged) {
		return false
	}
	err := errors.Join(found, a.removeGrams(number))
	a.options.logger().Warn("searches read all content of a segment until its grams are made again", zap.Uint64("segment", number), zap.Error(err))
	return true
}
