package agentlog

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/libsqlite"
	"github.com/weirhq/weir/plugins"
)

// opencode writes a file for each message; a newer one has a database of them.
// https://github.com/anomalyco/opencode/blob/dev/packages/opencode/src/session/message-v2.ts
// https://github.com/anomalyco/opencode/blob/dev/packages/opencode/src/session/session.sql.ts
var opencode = &Agent{
	Title: "opencode",
	folders: func() []string {
		return []string{filepath.Join(inHome("XDG_DATA_HOME", ".local", "share"), "opencode")}
	},
	matches: func(path string) bool {
		return filepath.Base(path) == opencodeDatabase ||
			strings.HasSuffix(path, ".json") && strings.Contains(filepath.ToSlash(path), "/storage/message/")
	},
	read: func(f *file) {
		if filepath.Base(f.Path) == opencodeDatabase {
			if err := f.readOpencodeDatabase(); err != nil {
				f.fail(fmt.Errorf("%s: %w", opencodeDatabase, err))
			}
		} else if m, ok := f.object(); ok {
			f.addOpencodeMessage(m.Get("sessionID").Str, m.Get("sessionID").Str, m)
		}
	},
}

const opencodeDatabase = "opencode.db"

// readOpencodeDatabase reads a database that opencode may be writing to.
func (f *file) readOpencodeDatabase() error {
	parameters := libsqlite.ReadOnly(f.Path)
	parameters.Set("_busy_timeout", "1000")
	db, err := sql.Open(libsqlite.Name, libsqlite.URI(f.Path, parameters))
	if err != nil {
		return err
	}
	defer db.Close()
	// A sub-agent has a session of its own, which may have others.
	rows, err := db.Query(`WITH RECURSIVE origin(id, root) AS (
			SELECT id, id FROM session WHERE parent_id IS NULL
			UNION SELECT session.id, root FROM session JOIN origin ON session.parent_id = origin.id
		)
		SELECT session_id, coalesce(root, session_id), data
		FROM message LEFT JOIN origin ON origin.id = session_id WHERE data LIKE '%"tokens"%'`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var session, root, data string
		if err := rows.Scan(&session, &root, &data); err != nil {
			return err
		}
		if !plugins.ValidJSON([]byte(data)) {
			f.skip("a message is no JSON")
			continue
		}
		f.addOpencodeMessage(session, root, gjson.Parse(data))
	}
	return rows.Err()
}

// addOpencodeMessage adds the call of a complete answer in a session. The root is the session of the
// user.
func (f *file) addOpencodeMessage(session, root string, m gjson.Result) {
	tokens, begun, completed := m.Get("tokens"), m.Get("time.created"), m.Get("time.completed")
	if m.Get("role").Str != "assistant" || !tokens.IsObject() || !completed.Exists() || m.Get("error").Exists() && tokens.Get("output").Num == 0 {
		return
	}
	read, write, reasoning := tokenCount(tokens.Get("cache.read")), tokenCount(tokens.Get("cache.write")), tokenCount(tokens.Get("reasoning"))
	c := Call{
		Provider: m.Get("providerID").Str, Model: m.Get("modelID").Str, Session: root,
		Project: firstText(m.Get("path.root"), m.Get("path.cwd")),
		// opencode counts what the cache served, and what was thought, apart.
		Usage: plugins.Usage{
			Input: tokenCount(tokens.Get("input")).Plus(read).Plus(write), CacheRead: read, CacheWrite: write,
			Output: tokenCount(tokens.Get("output")).Plus(reasoning), Reasoning: reasoning,
		},
	}
	if c.Project == "/" { // outside a repository
		c.Project = m.Get("path.cwd").Str
	}
	if session != root {
		c.SubAgent = session
	}
	if begun.Num > 0 {
		c.At = time.UnixMilli(begun.Int())
	}
	// A fork copies messages under ids of its own.
	c.ID = fmt.Sprint(begun.Int(), " ", completed.Int(), " ", c.Model, " ", c.Usage.Input.N, " ", c.Usage.Output.N)
	f.add(c)
}
