package main

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/weirhq/weir/plugins/catalog"
)

// source is what the catalogue says about a collection that it is made of.
type source struct {
	Name    string `json:"name"`
	URL     string `json:"url"`
	Licence string `json:"licence"`
	// Version is that of the package on PyPI, empty where a file was given.
	Version string `json:"version,omitempty"`
	// Date is the day the data was published.
	Date string `json:"date"`
}

// pin is a version of a package on PyPI, with the SHA-256 of its wheel.
type pin struct {
	source
	sha256 string
	member string // the file in the wheel that has the data
}

var (
	genaiPin = pin{
		source{"genai-prices", "https://github.com/pydantic/genai-prices", "MIT", "0.2.3", "2026-11-10"},
		"56976ce2b04ec206117f7d0e53f4849211a6724ab3a12119afec304eba63ee25",
		"genai_prices/data.py",
	}
	litellmPin = pin{
		source{"litellm", "https://github.com/BerriAI/litellm", "MIT", "1.109.1", "2026-11-12"},
		"1c8b4dd671fa0cd0850aa751678704ff77e595fb1e6085b2dc3be39ee19bdaaf",
		"litellm/model_prices_and_context_window_backup.json",
	}
)

// inputs say where the collections are to be read from.
type inputs struct{ genai, litellm, modelsDev string }

// collections are the three sources. Each may be missing.
type collections struct {
	genai     *genai
	litellm   litellm
	modelsDev modelsDev
}

func (in inputs) read() (c collections, err error) {
	if c.genai, c.litellm, err = in.packages(); err != nil {
		return c, err
	}
	text, err := fetch(in.modelsDev)
	if err != nil {
		return c, fmt.Errorf("%w; give the path or URL of models.dev's api.json with -models-dev", err)
	}
	if err := json.Unmarshal(text, &c.modelsDev); err != nil {
		return c, fmt.Errorf("%s: %w", in.modelsDev, err)
	}
	return c, nil
}

// packages are the two collections that are on PyPI.
func (in inputs) packages() (*genai, litellm, error) {
	data, err := genaiPin.read(in.genai)
	if err != nil {
		return nil, nil, err
	}
	if data, err = genaiJSON(data); err != nil {
		return nil, nil, err
	}
	g, err := parseGenai(data)
	if err != nil {
		return nil, nil, fmt.Errorf("genai-prices: %w", err)
	}
	if data, err = litellmPin.read(in.litellm); err != nil {
		return nil, nil, err
	}
	l, err := parseLitellm(data)
	if err != nil {
		return nil, nil, fmt.Errorf("litellm: %w", err)
	}
	return g, l, nil
}

// sources are what the catalogue says of the collections. The data of models.dev
// is as new as its newest entry.
func (c collections) sources() []source {
	m := source{Name: "models.dev", URL: "https://github.com/anomalyco/models.dev", Licence: "MIT", Date: c.modelsDev.date()}
	return []source{genaiPin.source, litellmPin.source, m}
}

// read is the data of the package, from the wheel at a path or URL, or from the
// pinned one.
func (p pin) read(wheel string) ([]byte, error) {
	if wheel == "" {
		dir, err := os.MkdirTemp("", "weir-catalog")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		if wheel, err = p.download(dir); err != nil {
			return nil, err
		}
	}
	packed, err := fetch(wheel)
	if err != nil {
		return nil, err
	}
	z, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		return nil, fmt.Errorf("%s is not a wheel: %w", wheel, err)
	}
	f, err := z.Open(p.member)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", wheel, err)
	}
	defer f.Close()
	return io.ReadAll(f)
}

// download gets the pinned wheel with pip, which checks its hash. The platform is
// fixed, since each has its own wheel with the same data.
func (p pin) download(dir string) (string, error) {
	requirements := filepath.Join(dir, "requirements.txt")
	line := fmt.Sprintf("%s==%s --hash=sha256:%s\n", p.Name, p.Version, p.sha256)
	if err := os.WriteFile(requirements, []byte(line), 0o600); err != nil {
		return "", err
	}
	pip := exec.Command("python3", "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:",
		"--platform=manylinux_2_28_x86_64", "--python-version=3.12", "--require-hashes", "--requirement", requirements, "--dest", dir)
	if out, err := pip.CombinedOutput(); err != nil {
		return "", fmt.Errorf("pip download %s: %w\n%s", p.Name, err, out)
	}
	wheels, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil || len(wheels) != 1 {
		return "", fmt.Errorf("pip downloaded %v for %s, not one wheel", wheels, p.Name)
	}
	return wheels[0], nil
}

// fetch reads a file, or what a URL serves.
func fetch(from string) ([]byte, error) {
	if !strings.HasPrefix(from, "https://") {
		return os.ReadFile(from)
	}
	r, err := http.Get(from)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", from, r.Status)
	}
	return io.ReadAll(r.Body)
}

//go:embed genai.py
var genaiScript string

// genaiJSON is the data of genai-prices as JSON: its package has it as Python.
func genaiJSON(python []byte) ([]byte, error) {
	run := exec.Command("python3", "-c", genaiScript)
	run.Stdin = bytes.NewReader(python)
	run.Stderr = os.Stderr
	return run.Output()
}

// today is the day that prices are compared on: that of the newest source.
func today() catalog.Date {
	d, err := catalog.ParseDate(max(genaiPin.Date, litellmPin.Date))
	if err != nil {
		panic(err) // a constant
	}
	return d
}
