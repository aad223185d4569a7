// Package prose makes text that is as repetitive as prose.
package prose

import (
	"math/rand/v2"
	"strings"
)

// Writer writes words of a made-up vocabulary, each as frequent as Zipf's law says. zstd
// makes a third of them, as of English.
type Writer struct {
	vocabulary []string
	random     *rand.Rand
	rank       *rand.Zipf
}

// New makes a writer that writes the same for the same seed.
func New(seed uint64) *Writer {
	syllables := strings.Fields("a be ci do en fo ga hi in jo ka lu mer no or pre qui ra sti ter un ver wo ex ya zu th ch ing ed ly tion")
	w := &Writer{random: rand.New(rand.NewPCG(seed, 1))}
	for range 16000 {
		var word strings.Builder
		for range 1 + w.random.IntN(4) {
			word.WriteString(syllables[w.random.IntN(len(syllables))])
		}
		w.vocabulary = append(w.vocabulary, word.String())
	}
	w.rank = rand.NewZipf(w.random, 1.01, 4, uint64(len(w.vocabulary)-1))
	return w
}

// Text returns about n bytes of sentences and paragraphs.
func (w *Writer) Text(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(w.vocabulary[w.rank.Uint64()])
		switch w.random.IntN(60) {
		case 0:
			b.WriteString(".\n\n")
		case 1, 2, 3:
			b.WriteString(". ")
		case 4, 5, 6, 7:
			b.WriteString(", ")
		default:
			b.WriteByte(' ')
		}
	}
	return b.String()
}
