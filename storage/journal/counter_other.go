//go:build !unix

package journal

import "os"

func mapPage(f *os.File) ([]byte, error) {
	page := make([]byte, counterSize)
	_, err := f.ReadAt(page, 0)
	return page, err
}

func unmapPage([]byte) {}

// save writes the page, which costs an exchange a system call.
func (t *exchangeCounter) save() {
	if _, err := t.file.WriteAt(t.page, 0); err != nil {
		t.page = nil
	}
}
