// Package metric makes the labels of metrics. A series lives as long as the process, so a
// label must never be a name that a caller chose: only closed sets make a Label, and the
// collectors here take nothing else.
package metric

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Label is the value of a metric's label, out of a set that calls cannot extend.
type Label struct{ text string }

// String returns the value.
func (l Label) String() string { return l.text }

// Other stands for every name outside of a set.
var Other = Constant("other")

// constant is a type that no other package can name: only constants of the code convert
// to it.
type constant string

// Constant returns the label of a constant.
func Constant(text constant) Label { return Label{string(text)} }

// Set is a closed set of names.
type Set map[string]struct{}

// SetOf returns a set of constants.
func SetOf(names ...constant) Set {
	s := make(Set)
	for _, name := range names {
		s[string(name)] = struct{}{}
	}
	return s
}

// Add extends the set by names of the configuration or of the catalogue. The linter allows
// it where these are read.
func (s Set) Add(names ...string) {
	for _, name := range names {
		s[name] = struct{}{}
	}
}

// Of returns the label of a name that a caller may have chosen: Other unless the set has
// the name.
func (s Set) Of(name string) Label {
	if _, ok := s[name]; ok {
		return Label{name}
	}
	return Other
}

// Bounded is a set that learns the first Max names it is asked for. The zero Bounded learns none.
type Bounded struct {
	Max int

	mu    sync.Mutex // guards names
	names Set
}

// Of returns the label of a name: Other if the set is full and does not have the name.
func (b *Bounded) Of(name string) Label {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.names == nil {
		b.names = make(Set)
	}
	if len(b.names) < b.Max {
		b.names.Add(name)
	}
	return b.names.Of(name)
}

// Counters are counters with labels.
type Counters struct {
	prometheus.Collector
	vec *prometheus.CounterVec
}

// NewCounters returns counters with labels of those names.
func NewCounters(name, help string, labels ...string) Counters {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	return Counters{vec, vec}
}

// With returns the counter with the labels, in the order of their names.
func (c Counters) With(labels ...Label) prometheus.Counter {
	return c.vec.WithLabelValues(texts(labels)...)
}

// Histograms are histograms with labels.
type Histograms struct {
	prometheus.Collector
	vec *prometheus.HistogramVec
}

// NewHistograms returns histograms with those buckets, with labels of those names.
func NewHistograms(name, help string, buckets []float64, labels ...string) Histograms {
	vec := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	return Histograms{vec, vec}
}

// With returns the histogram with the labels, in the order of their names.
func (h Histograms) With(labels ...Label) prometheus.Observer {
	return h.vec.WithLabelValues(texts(labels)...)
}

func texts(labels []Label) []string {
	var list [8]string // metrics have fewer labels
	for i, l := range labels {
		list[i] = l.text
	}
	return list[:len(labels)]
}
