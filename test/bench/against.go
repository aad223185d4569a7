//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// tolerance is how much dearer than an older Weir a call may be.
const tolerance = 0.05

// addOlder adds an older Weir to the targets: a binary, or a commit, which it builds. Each
// target that runs Weir is measured with both, in the same rounds.
func (b *bench) addOlder(ctx context.Context, version string) error {
	binary, name := version, filepath.Base(version)
	if info, err := os.Stat(version); err != nil || info.IsDir() {
		if binary, name, err = buildCommit(ctx, version); err != nil {
			return err
		}
	}
	for _, t := range b.targets {
		if t.Name == plain || t.older != "" || len(t.Command) == 0 || t.Command[0] != "$WEIR" {
			continue
		}
		t.newer, t.older, t.binary = t.Name, name, binary
		t.Name += "@" + name
		b.targets = append(b.targets, t)
	}
	return nil
}

// buildCommit builds the Weir of a commit, unless an earlier run has, and returns the
// binary and the commit's short hash.
func buildCommit(ctx context.Context, commit string) (binary, short string, err error) {
	hash, err := git(ctx, "rev-parse", "--verify", "--quiet", commit+"^{commit}")
	if err != nil {
		return "", "", fmt.Errorf("-against %s: neither a file nor a commit", commit)
	}
	short = hash[:8]
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", "", err
	}
	binary = filepath.Join(cache, "weir-bench", hash)
	if _, err := os.Stat(binary); err == nil {
		return binary, short, nil
	}
	dir, err := os.MkdirTemp("", "weir-"+short+"-")
	if err != nil {
		return "", "", err
	}
	defer os.RemoveAll(dir)
	if err := checkOut(ctx, hash, dir); err != nil {
		return "", "", fmt.Errorf("-against %s: %w", commit, err)
	}
	return binary, short, build(ctx, dir, binary)
}

// checkOut writes the files of a commit into a directory.
func checkOut(ctx context.Context, hash, dir string) error {
	archive := exec.CommandContext(ctx, "git", "archive", hash)
	archive.Stderr = os.Stderr
	files, err := archive.StdoutPipe()
	if err != nil {
		return err
	}
	if err := archive.Start(); err != nil {
		return err
	}
	unpack := exec.CommandContext(ctx, "tar", "-x", "-C", dir)
	unpack.Stdin, unpack.Stderr = files, os.Stderr
	return cmp.Or(unpack.Run(), archive.Wait())
}

func git(ctx context.Context, args ...string) (string, error) {
	output, err := exec.CommandContext(ctx, "git", args...).Output()
	return string(bytes.TrimSpace(output)), err
}

// reportOlder prints how much dearer the calls are than the calls of each older Weir. dearer
// lists the cases and targets that are dearer than the tolerance allows.
func (b *bench) reportOlder(w io.Writer, cells []*cell) (dearer []string) {
	fmt.Fprint(w, "| case | target | against | CPU | peak memory | |\n| --- | --- | --- | --: | --: | --- |\n")
	for i := range b.cases {
		for _, t := range b.targets {
			name := b.cases[i].name
			all := rounds(cells, name, t.Name, t.newer)
			if t.older == "" || len(all) == 0 {
				continue
			}
			more := func(m measure) figure {
				f, _ := figureOf(all, func(r round) float64 { return 100 * (m(r[t.newer])/m(r[t.Name]) - 1) })
				return f
			}
			processor, memory, verdict := more(cpu), more(peak), ""
			if processor.median > 100*tolerance {
				verdict = "dearer"
				dearer = append(dearer, name+" of "+t.newer)
			}
			fmt.Fprintf(w, "| %s | %s | %s | %s %% | %s %% | %s |\n", name, t.newer, t.older,
				processor.text("%+.1f", true, len(all) > 1), memory.text("%+.0f", true, len(all) > 1), verdict)
		}
	}
	return dearer
}
