package columnar

import "github.com/weirhq/weir/storage"

// NewestSessions are a few sessions, and the window of their requests.
type NewestSessions struct {
	Sessions map[Session]bool
	Window   storage.Window
}

// onlyNewest leaves out, if a query asks for the newest of all sessions, the requests of others.
func (x *rows) onlyNewest(q *storage.GroupQuery) error {
	if q.Apart || len(q.By) == 0 || q.By[0].Name != storage.BySession || q.Filter != (storage.All{}) || q.Window != storage.Always ||
		q.Top.By != storage.NewestGroups || q.Top.Count == 0 || q.Top.Count > maxNewest {
		return nil
	}
	found, err := x.source.Newest(q.Top)
	if err == nil && found != nil {
		x.sessions, x.window = found.Sessions, found.Window
	}
	return err
}

// maxNewest bounds the sessions that are looked for; beyond, to read all is as fast.
const maxNewest = 11_000
