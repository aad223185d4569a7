package sqlite

import (
	"testing"

	"github.com/weirhq/weir/storage"
)

func TestPruneDeletesTheTagsOfSessions(t *testing.T) {
	b := newBackend(t)
	tag := "prod"
	for at, session := range []string{"old", "new"} {
		write(t, b, &storage.Batch{Annotations: []*storage.Annotation{{Org: "acme", SessionID: session, Tag: &tag, At: storage.Timestamp(1000 * at)}}})
	}
	if _, err := b.Prune(t.Context(), 1000); err != nil {
		t.Fatal(err)
	}
	for session, want := range map[string]string{"old": "", "new": tag} {
		if got, err := b.SessionTag(t.Context(), "acme", session); err != nil || got != want {
			t.Errorf("the tag of %s is %q, want %q: %v", session, got, want, err)
		}
	}
}
