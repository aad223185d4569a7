package translate

// NameSet gives names that differ from all that it has. The zero value has none.
type NameSet struct {
	taken   map[string]bool
	numbers map[string]int // how many names there were for a base
}

// Take takes a name, which Name does not give any more.
func (s *NameSet) Take(name string) {
	if s.taken == nil {
		s.taken = make(map[string]bool)
	}
	s.taken[name] = true
}

// Name returns the first name for a base that is not taken, and takes it. nth returns the nth of
// them, from 1.
func (s *NameSet) Name(base string, nth func(n int) string) string {
	if s.numbers == nil {
		s.numbers = make(map[string]int)
	}
	for {
		s.numbers[base]++ // or else equal names would be compared with all before
		if name := nth(s.numbers[base]); !s.taken[name] {
			s.Take(name)
			return name
		}
	}
}
