package columnar

import (
	"cmp"
	"maps"
	"slices"

	"github.com/weirhq/weir/storage"
)

// Score is a score of the request with a key. Name is the id of the score's name.
type Score struct {
	Key   int64
	Name  uint32
	Value float64
}

// scoreColumn has the rows of a chunk that have a score, and the values: most rows have none.
type scoreColumn struct {
	rows   []uint32
	values []float64
}

// scoresByName are the columns of scores by the ids of their names.
type scoresByName map[uint32]*scoreColumn

func (s scoresByName) add(name uint32, row int, value float64) {
	column := s[name]
	if column == nil {
		column = new(scoreColumn)
		s[name] = column
	}
	column.rows, column.values = append(column.rows, uint32(row)), append(column.values, value)
}

// SetScores gives a chunk columns of scores. A chunk with more names than limit gets none, and the
// Source is asked.
func (c *Chunk) SetScores(scores []Score, limit int) {
	c.scores = make(scoresByName)
	rowOf := c.finder()
	for _, s := range scores {
		if row := rowOf(s.Key); row >= 0 {
			c.scores.add(s.Name, row, s.Value)
		}
	}
	if len(c.scores) > limit {
		c.scores = nil
	}
}

// scoreReader reads the scores of chunks: from the file if the file has them, else from the
// source.
type scoreReader struct {
	*scan
	last   visitedChunk
	scores scoresByName // of the last chunk
}

func (r *scoreReader) in(c *Chunk) scoresByName {
	switch {
	case c.scores != nil:
		return c.scores
	case r.last.again(c):
		return r.scores
	}
	r.asked, r.scores = true, make(scoresByName)
	rowOf := c.finder()
	err := r.source.Scores(c.low, c.high, func(s Score) {
		if row := rowOf(s.Key); row >= 0 {
			r.scores.add(s.Name, row, s.Value)
		}
	})
	r.failed = cmp.Or(r.failed, err)
	return r.scores
}

// scored is true of a row if matches is true of its score. lacks is the result for a row without
// the score.
func (s *scan) scored(name string, lacks bool, matches func(float64) bool) selection {
	id, err := s.source.Name(ScoreNames, name)
	s.failed = cmp.Or(s.failed, err)
	s.needs.scores = append(s.needs.scores, id)
	return s.ofChunk(func(c *Chunk, results []bool) {
		for row := range results {
			results[row] = lacks
		}
		if column := s.scoreReader.in(c)[id]; column != nil {
			for i, row := range column.rows {
				results[row] = matches(column.values[i])
			}
		}
	})
}

// ScoreNames is the kind of the names of scores.
const ScoreNames = "score"

// scoresText matches the text of all scores of a row.
func (s *scan) scoresText(matches func(string) bool) selection {
	s.needs.allScores = true
	lacks := matches(new(storage.Record).ScoresColumn())
	return s.ofChunk(func(c *Chunk, results []bool) {
		for row := range results {
			results[row] = lacks
		}
		scores := s.scoreReader.in(c)
		ids := slices.Collect(maps.Keys(scores))
		names, err := s.source.Texts(ids)
		if err != nil {
			s.failed = err
			return
		}
		byRow := make(map[uint32]*storage.Record)
		for i, id := range ids {
			for j, row := range scores[id].rows {
				if byRow[row] == nil {
					byRow[row] = &storage.Record{Scores: make(map[string]float64)}
				}
				byRow[row].Scores[names[i]] = scores[id].values[j]
			}
		}
		for row, r := range byRow {
			results[row] = matches(r.ScoresColumn())
		}
	})
}

// ofChunk makes a selection of a function that sets the results of all rows of a chunk.
func (s *scan) ofChunk(set func(c *Chunk, results []bool)) selection {
	var last visitedChunk
	var results []bool
	return func(c *Chunk, rows []int32) []int32 {
		if !last.again(c) {
			results = slices.Grow(results[:0], len(c.n))[:len(c.n)]
			set(c, results)
		}
		kept := rows[:0]
		for _, row := range rows {
			if results[row] {
				kept = append(kept, row)
			}
		}
		return kept
	}
}

// chunkScores calls each with the scores of the rows of a chunk.
func (s *scan) chunkScores(c *Chunk, from, to int64, chosen *keySet) {
	scores := s.scoreReader.in(c)
	b := &s.batch
	b.Groups = [][]int{nil}
	for _, name := range slices.Sorted(maps.Keys(scores)) {
		column := scores[name]
		for first := 0; first < len(column.rows); first += storage.BatchRows {
			last := min(first+storage.BatchRows, len(column.rows))
			s.selected = s.selected[:0]
			for _, row := range column.rows[first:last] {
				s.selected = append(s.selected, int32(row))
			}
			rows := s.choose(c, s.selected, from, to, chosen)
			b.Groups[0], b.Score = b.Groups[0][:0], b.Score[:0]
			next := first
			for _, row := range rows {
				for column.rows[next] != uint32(row) {
					next++
				}
				b.Groups[0], b.Score = append(b.Groups[0], s.tables[0].number(uint64(name))), append(b.Score, column.values[next])
			}
			if s.addRows(c, rows); s.full || s.ended.Load() {
				return
			}
		}
	}
}
