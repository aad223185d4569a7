package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
)

// ErasureScope says what an erasure removes of records. A greater one removes more.
type ErasureScope uint8

const (
	// EraseContent removes the bodies, and the inputs of templates.
	EraseContent ErasureScope = iota + 1
	// EraseIdentity also removes what names somebody: the numbers stay.
	EraseIdentity
	// EraseRecord removes the records.
	EraseRecord
)

// ErasureScopes are the names of the scopes, in the order of their values.
var ErasureScopes = []string{"content", "identity", "record"}

func (s ErasureScope) String() string { return ErasureScopes[s-1] }

// MarshalText implements encoding.TextMarshaler.
func (s ErasureScope) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *ErasureScope) UnmarshalText(text []byte) error {
	i := slices.Index(ErasureScopes, string(text))
	if i < 0 {
		return fmt.Errorf("content, identity or record is expected, not %q", text)
	}
	*s = ErasureScope(i + 1)
	return nil
}

// ErrCopiesRemain: all is erased, but for copies of rows in free parts of a database file that is too
// large to be written anew.
var ErrCopiesRemain = errors.New("copies of erased rows remain in free parts of the database, which is of Weir 0.1.0 and has more than 4 GiB, or not twice its size free on the disk: stop Weir and run `sqlite3 weir.db \"PRAGMA auto_vacuum = INCREMENTAL; VACUUM\"`, once")

// RecordEraser is a Backend from which single records can be erased.
type RecordEraser interface {
	// EraseRecords deletes records with their annotations, or, of EraseIdentity, replaces them by
	// what Record.Erased leaves; of EraseContent, it deletes the content of a ContentKeeper. The tag
	// of a session goes with its last record. In any scope, conversations become what WithoutErased
	// leaves. It returns once that would survive a power cut. Unknown ids are passed over.
	// Batches without these records may be written meanwhile.
	EraseRecords(ctx context.Context, org string, ids []uuid.UUID, scope ErasureScope) error
	// CountItems counts the items that records have added to conversations. whole are the ids of the
	// conversations of which WithoutErased leaves nothing without them.
	CountItems(ctx context.Context, org string, ids []uuid.UUID) (n int64, whole []string, err error)
	// EraseUnused removes from the store what only erased records have needed, such as names that
	// records share. Batches may be written meanwhile. After ErrCopiesRemain, the rest is done.
	EraseUnused(ctx context.Context) error
}

// Erased returns what an erasure leaves of a record, in a copy. Of EraseRecord, that is what a
// journal needs to account for the exchange.
func (r *Record) Erased(s ErasureScope) *Record {
	switch s {
	case EraseRecord:
		return &Record{ID: r.ID, Org: r.Org, CreatedAt: r.CreatedAt, EndState: r.EndState, Version: r.Version, Revision: r.Revision, Number: r.Number}
	case EraseIdentity:
		return r.anonymous()
	default:
		left := *r
		left.Content, left.Assets = ContentRef{}, nil
		return &left
	}
}

// anonymous returns what names nobody of a record: it lists what stays, so that a new field goes.
func (r *Record) anonymous() *Record {
	return &Record{
		ID: r.ID, Org: r.Org, Version: r.Version, Revision: r.Revision, Number: r.Number,
		CreatedAt: r.CreatedAt, RespondedAt: r.RespondedAt, UpdatedAt: r.UpdatedAt,
		Latency: r.Latency, TimeToFirstToken: r.TimeToFirstToken, Status: r.Status, EndState: r.EndState,
		Provider: r.Provider, Account: r.Account, Dialect: r.Dialect, Stream: r.Stream, Arm: r.Arm,
		Model: r.Model, RequestModel: r.RequestModel, ResponseModel: r.ResponseModel, ModelOverride: r.ModelOverride,
		Finish: r.Finish, ErrorType: r.ErrorType, ServiceTier: r.ServiceTier, InferenceGeo: r.InferenceGeo,
		RequestBytes: r.RequestBytes, ResponseBytes: r.ResponseBytes,
		Usage: r.Usage, Cost: r.Cost, CostCounted: r.CostCounted, UsageComplete: r.UsageComplete, ListCost: r.ListCost, PriceVersion: r.PriceVersion, Batch: r.Batch,
		CacheSavings: r.CacheSavings, CacheMiss: r.CacheMiss, CacheMissAt: r.CacheMissAt, CacheMissed: r.CacheMissed, CacheLoss: r.CacheLoss,
		RoutingSavings: r.RoutingSavings, PassthroughBilling: r.PassthroughBilling, Subscription: r.Subscription,
		CacheEnabled: r.CacheEnabled, CacheReferenceID: r.CacheReferenceID, AnswerCache: r.AnswerCache, SavedCost: r.SavedCost,
		Attempt: r.Attempt, AttemptOf: r.AttemptOf, Turn: r.Turn, GatewayNode: r.GatewayNode, Project: r.Project, Threat: r.Threat,
		RequestOmitted: r.RequestOmitted, ResponseOmitted: r.ResponseOmitted,
		RequestTruncated: r.RequestTruncated, ResponseTruncated: r.ResponseTruncated, Masked: r.Masked,
		Scores: r.Scores, Feedback: r.Feedback,
	}
}
