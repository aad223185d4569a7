package storage

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
	_ "time/tzdata" // for systems without a database of time zones
)

// Zone is the caller's time zone, which decides when a day begins. The zero Zone is UTC.
type Zone struct {
	// minutes is the distance from UTC, the same on every day, as JavaScript's
	// getTimezoneOffset tells it: local time is UTC minus minutes.
	minutes int
	// place has the distance of each day. If place is nil, the distance is minutes.
	place *time.Location
}

// MaxZone is the largest distance of a Zone in minutes, in either direction: a day.
const MaxZone = 24 * 60

// FixedZone is a zone with the same distance from UTC on every day, such as -330 in India
// and 210 in Newfoundland's winter.
func FixedZone(minutes int) Zone { return Zone{minutes: minutes} }

// ParseZone checks the field of a body that holds the distance of a time zone.
func ParseZone(minutes float64) (Zone, error) {
	if minutes != math.Trunc(minutes) || math.Abs(minutes) > MaxZone {
		return Zone{}, fmt.Errorf("whole minutes from -%d to %d are expected, as getTimezoneOffset gives them, not %v", MaxZone, MaxZone, minutes)
	}
	return FixedZone(int(minutes)), nil
}

// ParseTimezone finds a time zone by its name in the IANA database.
func ParseTimezone(name string) (Zone, error) {
	place, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return Zone{}, fmt.Errorf("%s is no time zone of the IANA database, such as Europe/Berlin", quote(name))
	}
	return Zone{place: place}, nil
}

// MarshalJSON writes the name of the zone, or else its distance.
func (z Zone) MarshalJSON() ([]byte, error) {
	if z.place != nil {
		return json.Marshal(z.place.String())
	}
	return json.Marshal(z.minutes)
}

// name tells the zone from others.
func (z Zone) name() string {
	name, _ := z.MarshalJSON() // which never fails
	return string(name)
}

// Named reports whether the zone has a name: its days may be of different lengths.
func (z Zone) Named() bool { return z.place != nil }

// Offset is local time minus UTC, in milliseconds, at t.
func (z Zone) Offset(t Timestamp) Timestamp {
	if z.place == nil {
		return -Timestamp(z.minutes) * minute
	}
	_, seconds := t.Time().In(z.place).Zone()
	return Timestamp(seconds) * 1000
}

// local is what a clock in the zone shows at t, as if it were UTC.
func (z Zone) local(t Timestamp) Timestamp { return t + z.Offset(t) }

// utc is when a clock in the zone shows a time first, or if it leaves the time out, when it
// goes on from there.
func (z Zone) utc(local Timestamp) Timestamp {
	if z.place == nil {
		return local - z.Offset(local)
	}
	before, after := local-z.Offset(local-day), local-z.Offset(local+day)
	switch {
	case z.local(before) == local:
		return before
	case z.local(after) == local:
		return after
	}
	start, _ := before.Time().In(z.place).ZoneBounds()
	return Millis(start)
}

// day numbers the days of the zone's calendar; day 0 is 1970-01-01.
func (z Zone) day(t Timestamp) int { return int(floorDiv(z.local(t), day)) }

// Changes returns the start of the window and the moments within the window at which the zone's
// distance from UTC changes, with the Offset from each moment on. ok is false if there are too
// many.
func (z Zone) Changes(w Window) (at, offsets []int64, ok bool) {
	const maxChanges = 1000
	t := max(w.From, minTimestamp)
	for len(at) < maxChanges {
		at, offsets = append(at, int64(t)), append(offsets, int64(z.Offset(t)))
		if z.place == nil {
			return at, offsets, true
		}
		_, end := t.Time().In(z.place).ZoneBounds()
		if end.IsZero() || Millis(end) > min(w.To, maxTimestamp) {
			return at, offsets, true
		}
		t = Millis(end)
	}
	return nil, nil, false
}
