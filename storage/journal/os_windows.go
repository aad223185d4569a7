package journal

import (
	"math"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/windows"
)

// errTaken is the error for a lock that another process has.
const errTaken = windows.ERROR_LOCK_VIOLATION

// lockFile locks a file, or fails at once.
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-lockfileex
func lockFile(f *os.File, exclusive bool) error {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if exclusive {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	return windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, math.MaxUint32, math.MaxUint32, new(windows.Overlapped))
}

// OpenFile opens a file that may be removed, renamed or replaced while it is open.
func OpenFile(path string, flag int, perm os.FileMode) (*os.File, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	access := uint32(windows.GENERIC_READ)
	switch flag & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR) {
	case os.O_WRONLY:
		access = windows.GENERIC_WRITE
	case os.O_RDWR:
		access |= windows.GENERIC_WRITE
	}
	disposition := uint32(windows.OPEN_EXISTING)
	switch flag & (os.O_CREATE | os.O_EXCL | os.O_TRUNC) {
	case os.O_CREATE | os.O_EXCL, os.O_CREATE | os.O_EXCL | os.O_TRUNC:
		disposition = windows.CREATE_NEW
	case os.O_CREATE | os.O_TRUNC:
		disposition = windows.CREATE_ALWAYS
	case os.O_CREATE:
		disposition = windows.OPEN_ALWAYS
	case os.O_TRUNC:
		disposition = windows.TRUNCATE_EXISTING
	}
	share := uint32(windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE)
	handle, err := windows.CreateFile(name, access, share, nil, disposition, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(handle), path), nil
}

// Rename renames a file, or replaces one that may be open.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/ntifs/ns-ntifs-_file_rename_information
func Rename(from, to string) error {
	absolute, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	name, err := windows.UTF16FromString(absolute)
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	source, err := windows.UTF16PtrFromString(from)
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	handle, err := windows.CreateFile(source, windows.DELETE, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE,
		nil, windows.OPEN_EXISTING, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	type renameInfo struct {
		flags  uint32
		root   windows.Handle
		length uint32 // in bytes, without the NUL
		name   [windows.MAX_LONG_PATH]uint16
	}
	info := renameInfo{
		flags:  windows.FILE_RENAME_REPLACE_IF_EXISTS | windows.FILE_RENAME_POSIX_SEMANTICS,
		length: uint32(2 * (len(name) - 1)),
	}
	copy(info.name[:], name)
	err = windows.SetFileInformationByHandle(handle, windows.FileRenameInfoEx, (*byte)(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if closed := windows.CloseHandle(handle); err == nil {
		err = closed
	}
	if err != nil { // a file system without POSIX semantics, such as FAT
		return os.Rename(from, to)
	}
	return nil
}

// SyncDir does nothing: NTFS writes the names of a directory to its own journal.
func SyncDir(string) error { return nil }

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
