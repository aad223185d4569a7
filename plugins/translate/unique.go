package translate

// Unique gives names that nothing else has. The zero value has given none.
type Unique struct {
	taken   map[string]bool
	numbers map[string]int // how many names there were for one
}

// Take takes a name, which Name does not give any more.
func (u *Unique) Take(name string) {
	if u.taken == nil {
		u.taken = make(map[string]bool)
	}
	u.taken[name] = true
}

// Name returns the first of the names for a name that is not taken, and takes it. nth returns the nth of
// them, from 1.
func (u *Unique) Name(of string, nth func(n int) string) string {
	if u.numbers == nil {
		u.numbers = make(map[string]int)
	}
	for {
		u.numbers[of]++ // or else equal names would be compared with all before
		if name := nth(u.numbers[of]); !u.taken[name] {
			u.Take(name)
			return name
		}
	}
}
