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
			f.addOpencodeMessage(m.Get("id").Str, m.Get("sessionID").Str, m)
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
	rows, err := db.Query("SELECT id, session_id, data FROM message WHERE data LIKE '%\"tokens\"%'")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id, session, data string
		if err := rows.Scan(&id, &session, &data); err != nil {
			return err
		}
		if !plugins.ValidJSON([]byte(data)) {
			f.skip("a message is no JSON")
			continue
		}
		f.addOpencodeMessage(id, session, gjson.Parse(data))
	}
	return rows.Err()
}

// addOpencodeMessage adds the call of an answer.
func (f *file) addOpencodeMessage(id, session string, m gjson.Result) {
	tokens := m.Get("tokens")
	if m.Get("role").Str != "assistant" || !tokens.IsObject() || m.Get("error").Exists() && tokens.Get("output").Num == 0 {
		return
	}
	read, write, reasoning := count(tokens.Get("cache.read")), count(tokens.Get("cache.write")), count(tokens.Get("reasoning"))
	c := Call{
		Provider: m.Get("providerID").Str, Model: m.Get("modelID").Str, Session: session,
		Project: first(m.Get("path.root"), m.Get("path.cwd")), ID: id,
		// opencode counts what the cache served, and what was thought, apart.
		Usage: plugins.Usage{
			Input: count(tokens.Get("input")).Plus(read).Plus(write), CacheRead: read, CacheWrite: write,
			Output: count(tokens.Get("output")).Plus(reasoning), Reasoning: reasoning,
		},
	}
	if at := m.Get("time.created"); at.Num > 0 {
		c.At = time.UnixMilli(at.Int())
	}
	f.add(c)
}
