package journal

import (
	"bytes"
	"context"
	"errors"
	"hash/maphash"

	"github.com/weirhq/weir/plugins/transcript"
	"github.com/weirhq/weir/storage"
)

// gramsBuilder makes the grams of sealed segments, one after the other, in memory that it keeps.
// Of a request that shares bytes with earlier ones, it reads only what is new: the bytes of other
// blocks are in the grams of these.
type gramsBuilder struct {
	from   contentReader
	texts  storage.SearchTexts
	blocks []blockGrams
	// read are the items whose grams the current block has. Calls that Weir's cache answers repeat
	// others byte by byte.
	read map[itemSum]bool
}

// itemSum is the hash of an item of a part.
type itemSum struct {
	part int
	sum  uint64
}

var itemSeed = maphash.MakeSeed()

// build writes the grams of the sealed segment at a path.
func (g *gramsBuilder) build(ctx context.Context, path, to string) error {
	g.from.parts, g.from.cacheBytes = storage.WholeContent, inOrderBytes
	if err := g.from.openFile(path); err != nil {
		return err
	}
	defer g.from.Close()
	for block, ordinals := range g.from.index.ordinals() {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := g.block(block)
		for _, ordinal := range ordinals {
			switch err := g.add(b, block, ordinal); {
			case errors.Is(err, errDamaged): // a search is to come across the damage
				for part := range parts {
					b.sets[part].setAll()
				}
			case err != nil:
				return err
			}
		}
	}
	return writeGrams(to, g.from.index, g.blocks[:len(g.from.index.blocks)])
}

// block returns the empty grams of a block.
func (g *gramsBuilder) block(i int) *blockGrams {
	if i == len(g.blocks) {
		g.blocks = append(g.blocks, blockGrams{})
		for part := range parts {
			g.blocks[i].sets[part] = newBitSet(1 << maxRowBits)
		}
	}
	b := &g.blocks[i]
	b.shares = nil
	for part := range parts {
		b.sets[part] = b.sets[part][:cap(b.sets[part])]
		clear(b.sets[part])
	}
	g.read = make(map[itemSum]bool)
	return b
}

// add adds the grams of an entry to those of its block.
func (g *gramsBuilder) add(b *blockGrams, block int, ordinal uint32) error {
	r := &g.from
	r.content, r.layout = storage.Content{}, layout{}
	if _, err := r.readSealed(ordinal); err != nil {
		return err
	}
	for i, p := range parts {
		if i == requestFrame && r.layout.extents != nil {
			if err := g.addShared(b, block); err != nil {
				return err
			}
			continue
		}
		f, err := r.frame(block, i)
		if err != nil {
			return err
		}
		sum := itemSum{i, maphash.Bytes(itemSeed, f.find(ordinal))}
		if g.read[sum] {
			continue
		}
		g.read[sum] = true
		g.texts.Part(&r.content, p.is, b.sets[i].addGrams)
	}
	return nil
}

// Around each place where a request's own bytes and shared bytes meet, the request is read again:
// neither has the grams that reach across. A piece that begins within an escape may be decoded in
// another way than the request, until the first letters that no backslash stands before.
const (
	shareMargin    = 128 // bytes on each side
	maxBackslashes = 16  // in a row within the margin
)

// addShared adds the grams of the request that was read, which shares bytes with others.
func (g *gramsBuilder) addShared(b *blockGrams, block int) error {
	c := &g.from.content
	request := c.Request.Data
	add := b.sets[requestFrame].addGrams
	g.texts.Inputs(c, add)
	if b.shares == nil {
		b.shares = newBitSet(len(g.from.index.blocks))
	}
	x, err := readExtents(g.from.layout.extents)
	if err != nil {
		return err
	}
	whole := !transcript.StartsJSON(request)
	at := 0            // in the request
	var earlier []byte // the end of the own bytes so far
	for len(x.rest) > 0 {
		e, err := x.next()
		if err != nil {
			return err
		}
		end := at + int(e.literal)
		whole = whole || deepEscapes(request, at) || deepEscapes(request, end)
		g.texts.Piece(request, request[max(at-shareMargin, 0):min(end+shareMargin, len(request))], add)
		if own := request[at:end]; len(own) > 0 {
			// A request may share bytes across the place where these meet in the file.
			g.texts.Piece(request, append(bytes.Clone(earlier), own[:min(len(own), shareMargin)]...), add)
			earlier = append(earlier, own[max(len(own)-shareMargin, 0):]...)
			earlier = earlier[max(len(earlier)-shareMargin, 0):]
		}
		if from := int(e.at >> 32); e.shared > 0 && from != block {
			b.shares.set(from)
		}
		at = end + int(e.shared)
	}
	if whole {
		g.texts.Part(c, storage.RequestPart, add)
	}
	return nil
}

// deepEscapes reports whether more backslashes stand in a row near a place than the margin is for.
func deepEscapes(request []byte, at int) bool {
	near := request[max(at-shareMargin, 0):min(at+shareMargin, len(request))]
	return bytes.Contains(near, manyBackslashes)
}

var manyBackslashes = bytes.Repeat([]byte{'\\'}, maxBackslashes)
