package clickhousetest

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha512"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// The npm package that has all of ClickHouse as a library: version 26.7.2.1 of the
// server, for Linux on amd64.
const (
	npmPackage = "@chdb/lib-linux-x64-gnu@26.7.3-stable.1"
	integrity  = "XP97mMqnc5tZpKQywR8N7cLTsHNiTmHr30pC5mzo3jWmukjKn2IBa60c2B/gWUNcuFjOMjWoorQICCqBVj5wpw=="
	inArchive  = "package/libchdb.so"
	library    = "libchdb-26.7.3.so"
)

//go:embed loader/loader.c
var loaderSource []byte

// Fetch puts the library and the program that loads it where Start looks for them,
// in the user's cache directory, unless they are there. It needs npm and cc.
func Fetch() error {
	dir, err := cache()
	if err != nil {
		return err
	}
	if _, _, err := programs(); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(dir, "fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	pack := exec.Command("npm", "pack", "--silent", npmPackage)
	pack.Dir, pack.Stderr = work, os.Stderr
	if err := pack.Run(); err != nil {
		return fmt.Errorf("npm pack %s: %w", npmPackage, err)
	}
	archives, err := filepath.Glob(filepath.Join(work, "*.tgz"))
	if err != nil || len(archives) != 1 {
		return fmt.Errorf("npm pack %s left %d archives", npmPackage, len(archives))
	}
	unpacked := filepath.Join(work, library)
	if err := unpack(archives[0], unpacked); err != nil {
		return fmt.Errorf("%s: %w", npmPackage, err)
	}
	source, loader := filepath.Join(work, "loader.c"), filepath.Join(work, "loader")
	if err := os.WriteFile(source, loaderSource, 0o600); err != nil {
		return err
	}
	if out, err := exec.Command("cc", "-O1", "-o", loader, source, "-ldl", "-lpthread").CombinedOutput(); err != nil {
		return fmt.Errorf("cc: %w: %s", err, out)
	}
	return errors.Join(
		os.Rename(loader, filepath.Join(dir, loaderName())),
		os.Rename(unpacked, filepath.Join(dir, library)),
	)
}

// unpack takes the library out of the archive. The archive's checksum must be right.
func unpack(archive, to string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha512.New()
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	if got := base64.StdEncoding.EncodeToString(sum.Sum(nil)); got != integrity {
		return fmt.Errorf("the archive has the SHA-512 %s, not %s", got, integrity)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	uncompressed, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for files := tar.NewReader(uncompressed); ; {
		header, err := files.Next()
		if err != nil {
			return fmt.Errorf("%s: %w", inArchive, err)
		}
		if header.Name != inArchive {
			continue
		}
		out, err := os.Create(to)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, files)
		return errors.Join(err, out.Close())
	}
}

// cache is where the library is kept.
func cache() (string, error) {
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "weir", "clickhouse"), err
}

// loaderName changes with the loader, so that no old loader is run.
func loaderName() string { return fmt.Sprintf("loader-%x", sha512.Sum512(loaderSource))[:16] }

// programs are the paths of the loader and the library. Both files must be there.
func programs() (loader, lib string, err error) {
	dir, err := cache()
	if err != nil {
		return "", "", err
	}
	loader, lib = filepath.Join(dir, loaderName()), filepath.Join(dir, library)
	for _, path := range []string{loader, lib} {
		if _, err := os.Stat(path); err != nil {
			return "", "", err
		}
	}
	return loader, lib, nil
}
