package translate

import (
	"math"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// Stop are the texts at which the model shall stop, which clients of other APIs than
// Responses have: the field "stop". None is empty.
func (p *Request) Stop() []string {
	var stops []string
	for _, v := range gjson.GetBytes(p.Raw, "stop").Array() {
		if v.Str != "" {
			stops = append(stops, v.Str)
		}
	}
	return stops
}

const (
	// AnyStops is the limit of a provider that takes any number of stop sequences.
	AnyStops = math.MaxInt
	// maxEnforced is how many stop sequences the Assembler looks for.
	maxEnforced = 16
	// maxStop is the length of the longest of them, in bytes.
	maxStop = 256
)

// FitStop returns the stop sequences that a provider takes: so many of those that takes allows, all if it
// is nil. The Assembler ends the text at the others, with a warning about those that are too many or too
// long for it.
func (p *Request) FitStop(limit int, takes func(stop string) bool) ([]string, error) {
	var sent []string
	stops := p.Stop()
	enforced := enforceable(stops)
	for _, stop := range stops {
		switch {
		case len(sent) < limit && (takes == nil || takes(stop)):
			sent = append(sent, stop)
		case slices.Contains(enforced, stop):
		default:
			if err := p.DropWithWarning("stop", "too many sequences, or one that is too long: left out"); err != nil {
				return nil, err
			}
		}
	}
	return sent, nil
}

// IsNotBlank reports whether a stop sequence has more than white space, as some providers demand.
func IsNotBlank(stop string) bool { return strings.TrimSpace(stop) != "" }

// enforceable returns the stop sequences that the Assembler looks for.
func enforceable(stops []string) (enforced []string) {
	for _, stop := range stops {
		if len(stop) <= maxStop && len(enforced) < maxEnforced {
			enforced = append(enforced, stop)
		}
	}
	return enforced
}

// StoppedAt says which stop sequence ended the text. One that the client has not sent is the provider's
// own, and ignored. Of what the model writes, nothing is taken after it.
func (a *Assembler) StoppedAt(sequence string) {
	if slices.Contains(a.clientStops, sequence) {
		a.Finish(ReasonStopSequence)
		a.stopSequence = sequence
	}
}

// StopSequence is the stop sequence that ended the text, "" if none did, or if the provider does not say
// which of several.
func (a *Assembler) StopSequence() string {
	if a.reason != ReasonStopSequence {
		return ""
	}
	if a.stopSequence == "" && len(a.clientStops) == 1 {
		return a.clientStops[0]
	}
	return a.stopSequence
}

// untilStop returns what of a text, to which s is added, comes before a stop sequence: a provider may
// have no such field, take fewer sequences than the client has, or ignore them. What may be the beginning
// of one is held back until more of the text comes.
func (a *Assembler) untilStop(p *OutputPart, s string) string {
	switch {
	case len(a.stops) == 0:
		return s
	case a.stopSequence != "":
		return ""
	}
	s, p.tail = p.tail+s, ""
	if before, stop := cutStop(s, a.stops); stop != "" {
		a.StoppedAt(stop)
		return before
	}
	for _, stop := range a.stops {
		for n := min(len(stop)-1, len(s)); n > len(p.tail); n-- {
			if strings.HasSuffix(s, stop[:n]) {
				p.tail = stop[:n]
			}
		}
	}
	return s[:len(s)-len(p.tail)]
}

// cutStop returns the stop sequence that ends first in s, "" if there is none, and what comes before it.
func cutStop(s string, stops []string) (before, stop string) {
	end := len(s) + 1
	for _, candidate := range stops {
		i := strings.Index(s, candidate)
		if e := i + len(candidate); i >= 0 && (e < end || e == end && len(candidate) > len(stop)) {
			before, stop, end = s[:i], candidate, e
		}
	}
	return before, stop
}
