package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
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
	// Version is that of the package on PyPI, "" for models.dev.
	Version string `json:"version,omitempty"`
	// Date is the day the data was published.
	Date string `json:"date"`
}

// pin is a version of a package on PyPI, with the SHA-256 of its wheel.
type pin struct {
	source
	sha256 string
	data   string // the file with the prices
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

// today is the day that prices are compared on: that of the newest package.
var today = func() catalog.Date {
	d, err := catalog.ParseDate(max(genaiPin.Date, litellmPin.Date))
	if err != nil {
		panic(err) // a constant
	}
	return d
}()

type collections struct {
	genai     *genai
	litellm   litellm
	modelsDev modelsDev // nil for the check
}

//go:embed genai.py
var genaiScript string

// readPackages installs the two packages and reads their prices. pip checks the hashes. The
// platform is fixed, since the wheel of each platform has the same data.
func readPackages() (c collections, err error) {
	dir, err := os.MkdirTemp("", "weir-catalog")
	if err != nil {
		return c, err
	}
	defer os.RemoveAll(dir)
	var requirements strings.Builder
	for _, p := range []pin{genaiPin, litellmPin} {
		fmt.Fprintf(&requirements, "%s==%s --hash=sha256:%s\n", p.Name, p.Version, p.sha256)
	}
	list := filepath.Join(dir, "requirements.txt")
	if err := os.WriteFile(list, []byte(requirements.String()), 0o600); err != nil {
		return c, err
	}
	pip := exec.Command("python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile",
		"--only-binary=:all:", "--platform=manylinux_2_28_x86_64", "--python-version=3.12", "--require-hashes", "--requirement", list, "--target", dir)
	if out, err := pip.CombinedOutput(); err != nil {
		return c, fmt.Errorf("pip install of\n%s%w\n%s", &requirements, err, out)
	}
	if c.genai, err = readGenai(filepath.Join(dir, genaiPin.data)); err != nil {
		return c, fmt.Errorf("genai-prices: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, litellmPin.data))
	if err != nil {
		return c, err
	}
	if c.litellm, err = parseLitellm(text); err != nil {
		return c, fmt.Errorf("litellm: %w", err)
	}
	return c, nil
}

// readGenai reads the data of genai-prices, which is Python.
func readGenai(path string) (*genai, error) {
	run := exec.Command("python3", "-c", genaiScript, path)
	run.Stderr = os.Stderr
	text, err := run.Output()
	if err != nil {
		return nil, err
	}
	return parseGenai(text)
}

// readModelsDev reads a file, or what a URL serves.
func readModelsDev(from string) (modelsDev, error) {
	text, err := os.ReadFile(from)
	if strings.HasPrefix(from, "https://") {
		text, err = get(from)
	}
	if err != nil {
		return nil, err
	}
	return parseModelsDev(text)
}

func get(url string) ([]byte, error) {
	r, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", url, r.Status)
	}
	return io.ReadAll(r.Body)
}

// unit is what a source prices: the rate in the catalogue, and how many of the source's
// units the rate is for.
type unit struct {
	rate string
	per  *big.Rat
}

func (u unit) set(p *catalog.Price, dollars json.Number) (err error) {
	n, ok := new(big.Rat).SetString(string(dollars))
	if !ok {
		return fmt.Errorf("%q is not a number", dollars)
	}
	*p.Rate(u.rate), err = catalog.ParseRate(n.Mul(n, u.per).FloatString(9))
	return err
}

var (
	one     = big.NewRat(1, 1)
	million = big.NewRat(1e6, 1)
)
