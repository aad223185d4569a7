package storage

import (
	"context"

	"github.com/weirhq/weir/plugins"
)

// Analytics answers what requests add up to: by user, by session and by score.
// A backend that can read Rows needs no arithmetic of its own, it returns what
// the query's Answer makes of them.
type Analytics interface {
	// Users answers one page of users.
	Users(ctx context.Context, q *UserQuery) (*UserPage, error)
	// UserOverview answers what users cost and ask over time.
	UserOverview(ctx context.Context, q *UserOverviewQuery) (*UserOverview, error)
	// Sessions answers one page of sessions, newest first.
	Sessions(ctx context.Context, q *SessionQuery) ([]Session, error)
	// SessionMetrics answers what sessions are like over time.
	SessionMetrics(ctx context.Context, q *SessionMetricsQuery) (*SessionMetrics, error)
	// Scores answers the scores of requests over time.
	Scores(ctx context.Context, q *ScoreQuery) ([]ScorePoint, error)
}

// Rows are the requests of one organisation in one state of the store, grouped
// in one way. A backend makes Rows for a query, bound to the query's context.
type Rows interface {
	// Scan calls each with the requests that the filter and the window choose,
	// in any order, until each returns false, which is no error. The filter has
	// no leaves about users or sessions. Requests without a group are left out.
	// The row is each's until it returns.
	Scan(f Filter, w Window, each func(*Row) bool) error
	// Key is what a group stands for.
	Key(group int) Key
	// Err is the error of the query's context, nil until that ends.
	Err() error
}

// Grouping is what Rows are grouped by.
type Grouping uint8

const (
	// ByUser groups requests by their user id; those without have no group.
	ByUser Grouping = iota
	// BySession groups requests by session id and name together; those without
	// an id have no group.
	BySession
	// ByScore has a row for each score of a request, feedback included, and
	// groups them by the score's name. Of the row, Group, CreatedAt and Score
	// are read.
	ByScore
)

// Row is what aggregates read of one request.
type Row struct {
	// Group numbers the user, session or score, from 0 without large gaps, the
	// same in all scans of the same Rows.
	Group int
	// Attempt is true of an attempt that did not answer its call (its AttemptOf
	// is set): its cost counts, the rest does not.
	Attempt bool
	// Status, Cost, Input, Output, Latency and the times are the record's.
	Status                 plugins.Count
	CreatedAt, RespondedAt Timestamp
	Cost                   plugins.Cost
	Input, Output          plugins.Count
	Latency                plugins.Duration
	// Score is the value of the score.
	Score float64
}

// Key is what a group of rows stands for.
type Key struct {
	// ID is the user id, the session id or the score's name.
	ID string
	// Name and Tag are the session's.
	Name, Tag string
}
