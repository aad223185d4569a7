//go:build !linux

package journal

func (f osFile) write(pieces [][]byte, off int64) error {
	for _, p := range pieces {
		n, err := f.WriteAt(p, off)
		if err != nil {
			return err
		}
		off += int64(n)
	}
	return nil
}

func (f osFile) sync() error { return f.Sync() }
