package llmapp

import (
	"math"
	"sync"
)

// habit names calls that write alike: those of a key at a model.
type habit struct{ key, provider, model string }

const (
	// maxHabits bounds how many habits are in memory.
	maxHabits = 10_000
	// fewCalls are too few to expect anything of the next one.
	fewCalls = 20
	// manyCalls are enough: then older ones count half.
	manyCalls = 1000
	// expectedPart of the calls write no more than what is expected, in percent.
	expectedPart = 95
)

// habits is how many tokens calls wrote, in memory. The zero value knows of no call.
type habits struct {
	mu sync.Mutex
	of map[habit]*written
}

// written counts calls by how much they wrote, in steps of a quarter from 16 tokens on.
type written struct {
	calls int
	steps [56]int
}

// step is the step of an output of so many tokens, and most the most tokens of a step.
func step(tokens int64) int {
	return min(max(int(math.Ceil(math.Log(float64(tokens)/16)/math.Log(1.25))), 0), len(written{}.steps)-1)
}

func most(step int) int64 { return int64(16 * math.Pow(1.25, float64(step))) }

// learn counts a call that wrote so many tokens.
func (h *habits) learn(of habit, tokens int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.of[of]
	if w == nil {
		for other := range h.of { // any, if there are too many
			if len(h.of) < maxHabits {
				break
			}
			delete(h.of, other)
		}
		if h.of == nil {
			h.of = make(map[habit]*written)
		}
		w = new(written)
		h.of[of] = w
	}
	w.steps[step(tokens)]++
	if w.calls++; w.calls < manyCalls {
		return
	}
	w.calls = 0
	for i := range w.steps {
		w.steps[i] /= 2
		w.calls += w.steps[i]
	}
}

// expects returns how many tokens most calls write, 0 if too few calls are known.
func (h *habits) expects(of habit) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.of[of]
	if w == nil || w.calls < fewCalls {
		return 0
	}
	rest := w.calls * expectedPart
	for i, n := range w.steps {
		if rest -= n * 100; rest <= 0 {
			return most(i)
		}
	}
	return 0
}
