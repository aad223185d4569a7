package storage_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// What a client hands back is the cursor that it was given, and nothing else is one.
func TestCursorsComeBack(t *testing.T) {
	record := &storage.Record{
		ID: uuid.UUID{1, 0xff}, CreatedAt: -1, Cost: plugins.KnownCost(1 << 62), Properties: map[string]string{"a": "", "b": "\xff\x00"},
	}
	for _, sorts := range [][]storage.Sort{
		nil,
		{{Key: storage.SortCost}, {Key: storage.SortLatency, Desc: true}},
		{{Key: storage.SortProperties, Name: "a"}, {Key: storage.SortProperties, Name: "b"}, {Key: storage.SortProperties, Name: "c"}},
	} {
		q := storage.RequestQuery{Sort: sorts}
		want := q.Cursor(record, nil)
		if err := q.ContinueAfter(want.String()); err != nil || !reflect.DeepEqual(q.After, want) {
			t.Errorf("sorted by %v: %+v, %v, want %+v", sorts, q.After, err, want)
		}
	}
	users := storage.UserQuery{Sort: []storage.UserSort{{Key: storage.UserAverageRequestsPerDayActive}}}
	user := users.Cursor(&storage.User{ID: "ann", AverageRequestsPerDayActive: storage.Amount{N: 1.0 / 3, Valid: true}})
	if err := users.ContinueAfter(user.String()); err != nil || !reflect.DeepEqual(users.After, user) {
		t.Errorf("%+v, %v, want %+v", users.After, err, user)
	}

	newest := (&storage.RequestQuery{}).Cursor(record, nil).String()
	for name, ask := range map[string]func() error{
		"empty":     func() error { return new(storage.RequestQuery).ContinueAfter("") },
		"no base64": func() error { return new(storage.RequestQuery).ContinueAfter("?") },
		"cut off":   func() error { return new(storage.RequestQuery).ContinueAfter(newest[:len(newest)-2]) },
		"longer":    func() error { return new(storage.RequestQuery).ContinueAfter(newest + "AAAA") },
		"of another sort": func() error {
			return (&storage.RequestQuery{Sort: []storage.Sort{{Key: storage.SortCreatedAt}}}).ContinueAfter(newest)
		},
		"of another query":  func() error { return new(storage.UserQuery).ContinueAfter(newest) },
		"of other sessions": func() error { return new(storage.SessionQuery).ContinueAfter(user.String()) },
	} {
		if err := ask(); !errors.Is(err, storage.ErrCursor) {
			t.Errorf("%s: %v, want ErrCursor", name, err)
		}
	}
}

// Whatever a client makes of a cursor is an error or a place, never a panic.
func FuzzCursor(f *testing.F) {
	f.Add((&storage.RequestQuery{}).Cursor(&storage.Record{CreatedAt: 7}, nil).String())
	records := []*storage.Record{{CreatedAt: 1}, {CreatedAt: 2}}
	f.Fuzz(func(t *testing.T, text string) {
		q := &storage.RequestQuery{Filter: storage.All{}, Limit: 10}
		if q.ContinueAfter(text) == nil {
			storage.Evaluate(q, records, func(*storage.Record) *storage.Content { return nil })
		}
	})
}
