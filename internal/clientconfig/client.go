package clientconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Gateway is the Weir that a client shall call.
type Gateway struct {
	Address string // without a path, as in https://llm.example.com
	Key     string // the API key, "" with TokenCommand
	// TokenCommand prints a fresh token in place of a key: a program and its arguments.
	TokenCommand []string
	Models       []string // the models to offer, the default one first; empty if the client has its own list
}

// Client is a coding agent.
type Client struct {
	Name  string // the argument of the command
	Title string // the name of the product
	// Steps tells how to set up a client whose settings are in no file. Such a client has no other field.
	Steps func(Gateway) string
	// NeedsModels is set for a client that has no list of models of its own.
	NeedsModels bool
	// TakesCommand is set for a client that runs a TokenCommand whenever it needs a token.
	TakesCommand bool
	// Overrides are the environment variables that win over the file.
	Overrides []string
	// Path is one that the site must serve beside those of llm_gateway; empty for none.
	Path string
	// Note is what else the user has to know; empty for nothing.
	Note string

	file     func(project string) (string, error)
	format   format
	settings func(Gateway) []setting
	// noComments is set for a client that ignores a JSON file with comments, or commas at the end of lists.
	noComments bool
	// rivals are the settings that win over a TokenCommand.
	rivals [][]string
}

// setting is a value in a file, as the file's format writes it.
type setting struct {
	path []string
	text string
}

// Clients are the clients by the order in which they are listed.
var Clients = []*Client{claude, codex, opencode, gemini, cursor, continueDev}

// File returns the configuration file of the user, or that of a project if its folder is named.
// A symbolic link is followed, so that the link stays one.
func (c *Client) File(project string) (string, error) {
	file, err := c.file(project)
	if err != nil {
		return "", err
	}
	if file, err = filepath.Abs(file); err != nil {
		return "", err
	}
	return resolve(file)
}

// resolve follows the links on the way to a file. What does not exist yet keeps its name, in the
// folder that its parent's link leads to.
func resolve(file string) (string, error) {
	target, err := filepath.EvalSymlinks(file)
	if !errors.Is(err, os.ErrNotExist) {
		return target, err
	}
	if _, err := os.Lstat(file); err == nil {
		return "", fmt.Errorf("%s is a link whose target does not exist: create the target, or remove the link", file)
	}
	folder, err := resolve(filepath.Dir(file))
	return filepath.Join(folder, filepath.Base(file)), err
}

// inHome returns a path under the folder that an environment variable names, else under one of the
// home directory.
func inHome(variable, folder string, rest ...string) (string, error) {
	if dir := os.Getenv(variable); dir != "" {
		return filepath.Join(append([]string{dir}, rest...)...), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(append([]string{home, folder}, rest...)...), nil
}

// quote returns s as a string of JSON, which is one of TOML and of YAML, too.
func quote(s string) string {
	text, _ := json.Marshal(s) // a string always marshals
	return string(text)
}
