package journal

import (
	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

type (
	record     = storage.Record
	annotation = storage.Annotation
	loss       = storage.Loss
	content    = storage.Content
	moment     = storage.Timestamp
)

// recordWire is the metadata of a record's entry.
var recordWire = message[record]{
	1:  id[record](func(r *record) *uuid.UUID { return &r.ID }),
	2:  text[record](func(r *record) *string { return &r.Org }),
	3:  text[record](func(r *record) *string { return &r.AuthHash }),
	4:  integer[record, moment](func(r *record) *moment { return &r.CreatedAt }),
	5:  integer[record, moment](func(r *record) *moment { return &r.RespondedAt }),
	6:  quantity[record, plugins.Milliseconds](func(r *record) *plugins.Duration { return &r.Latency }),
	7:  quantity[record, plugins.Milliseconds](func(r *record) *plugins.Duration { return &r.TimeToFirstToken }),
	8:  quantity[record, int64](func(r *record) *plugins.Count { return &r.Status }),
	9:  integer[record, storage.EndState](func(r *record) *storage.EndState { return &r.EndState }),
	10: text[record](func(r *record) *string { return &r.Provider }),
	11: text[record](func(r *record) *string { return (*string)(&r.Dialect) }),
	12: text[record](func(r *record) *string { return &r.Model }),
	13: text[record](func(r *record) *string { return &r.RequestModel }),
	14: text[record](func(r *record) *string { return &r.ResponseModel }),
	15: text[record](func(r *record) *string { return &r.ModelOverride }),
	16: text[record](func(r *record) *string { return &r.Path }),
	17: text[record](func(r *record) *string { return &r.TargetURL }),
	18: text[record](func(r *record) *string { return &r.ResponseID }),
	19: flag[record](func(r *record) *bool { return &r.Stream }),
	20: text[record](func(r *record) *string { return &r.Finish }),
	21: text[record](func(r *record) *string { return &r.ErrorType }),
	22: text[record](func(r *record) *string { return &r.ServiceTier }),
	23: integer[record, int64](func(r *record) *int64 { return &r.RequestBytes }),
	24: integer[record, int64](func(r *record) *int64 { return &r.ResponseBytes }),
	25: quantity[record, int64](func(r *record) *plugins.Count { return &r.Usage.Input }),
	26: quantity[record, int64](func(r *record) *plugins.Count { return &r.Usage.Output }),
	27: quantity[record, int64](func(r *record) *plugins.Count { return &r.Usage.CacheRead }),
	28: quantity[record, int64](func(r *record) *plugins.Count { return &r.Usage.CacheWrite }),
	29: quantity[record, int64](func(r *record) *plugins.Count { return &r.Usage.CacheWrite1h }),
	30: quantity[record, int64](func(r *record) *plugins.Count { return &r.Usage.InputAudio }),
	31: quantity[record, int64](func(r *record) *plugins.Count { return &r.Usage.CacheReadAudio }),
	32: quantity[record, int64](func(r *record) *plugins.Count { return &r.Usage.InputImage }),
	33: quantity[record, int64](func(r *record) *plugins.Count { return &r.Usage.Reasoning }),
	34: quantity[record, int64](func(r *record) *plugins.Count { return &r.Usage.OutputAudio }),
	35: quantity[record, int64](func(r *record) *plugins.Count { return &r.Usage.OutputImage }),
	36: quantity[record, int64](func(r *record) *plugins.Count { return &r.Usage.BilledInput }),
	37: quantity[record, int64](func(r *record) *plugins.Count { return &r.Usage.BilledOutput }),
	38: quantity[record, int64](func(r *record) *plugins.Count { return &r.Usage.WebSearches }),
	39: quantity[record, plugins.Nanodollars](func(r *record) *plugins.Cost { return &r.Usage.ReportedCost }),
	40: quantity[record, plugins.Nanodollars](func(r *record) *plugins.Cost { return &r.Cost }),
	41: text[record](func(r *record) *string { return &r.PriceVersion }),
	42: flag[record](func(r *record) *bool { return &r.PassthroughBilling }),
	43: text[record](func(r *record) *string { return &r.UserID }),
	44: text[record](func(r *record) *string { return &r.SessionID }),
	45: text[record](func(r *record) *string { return &r.SessionName }),
	46: text[record](func(r *record) *string { return &r.SessionPath }),
	47: text[record](func(r *record) *string { return &r.PromptID }),
	48: text[record](func(r *record) *string { return &r.PromptVersion }),
	49: text[record](func(r *record) *string { return &r.NodeID }),
	50: text[record](func(r *record) *string { return &r.JobID }),
	51: text[record](func(r *record) *string { return &r.ExperimentID }),
	52: text[record](func(r *record) *string { return &r.CountryCode }),
	53: text[record](func(r *record) *string { return &r.Referrer }),
	54: flag[record](func(r *record) *bool { return &r.Threat }),
	55: labels[record](func(r *record) *map[string]string { return &r.Properties }),
	56: flag[record](func(r *record) *bool { return &r.CacheEnabled }),
	57: id[record](func(r *record) *uuid.UUID { return &r.CacheReferenceID }),
	58: integer[record, int](func(r *record) *int { return &r.Attempt }),
	59: id[record](func(r *record) *uuid.UUID { return &r.AttemptOf }),
	60: text[record](func(r *record) *string { return &r.TraceID }),
	61: text[record](func(r *record) *string { return &r.SpanID }),
	62: flag[record](func(r *record) *bool { return &r.RequestOmitted }),
	63: flag[record](func(r *record) *bool { return &r.ResponseOmitted }),
	64: flag[record](func(r *record) *bool { return &r.RequestTruncated }),
	65: flag[record](func(r *record) *bool { return &r.ResponseTruncated }),
	66: texts[record](func(r *record) *[]string { return &r.Assets }),
	67: numbers[record](func(r *record) *map[string]float64 { return &r.Scores }),
	68: sub[record, storage.Feedback]{func(r *record) **storage.Feedback { return &r.Feedback }, feedbackWire},
	69: integer[record, moment](func(r *record) *moment { return &r.UpdatedAt }),
	// The content of an earlier version, where the entry has none of its own.
	70: integer[record, uint64](func(r *record) *uint64 { return &r.Content.Segment }),
	71: integer[record, uint32](func(r *record) *uint32 { return &r.Content.Ordinal }),
	72: integer[record, uint64](func(r *record) *uint64 { return &r.Number }),
	73: quantity[record, int64](func(r *record) *plugins.Count { return &r.Usage.SearchUnits }),
	74: quantity[record, int64](func(r *record) *plugins.Count { return &r.Usage.Images }),
	75: quantity[record, int64](func(r *record) *plugins.Count { return &r.Usage.Pages }),
	76: quantity[record, plugins.Milliseconds](func(r *record) *plugins.Duration { return &r.Usage.AudioDuration }),
	77: text[record](func(r *record) *string { return &r.InferenceGeo }),
	78: quantity[record, plugins.Nanodollars](func(r *record) *plugins.Cost { return &r.CacheSavings }),
	79: flag[record](func(r *record) *bool { return &r.Subscription }),
	80: quantity[record, plugins.Nanodollars](func(r *record) *plugins.Cost { return &r.ListCost }),
	81: text[record](func(r *record) *string { return &r.RateLimits }),
	82: id[record](func(r *record) *uuid.UUID { return &r.ParentID }),
	83: id[record](func(r *record) *uuid.UUID { return &r.RootID }),
	84: quantity[record, int64](func(r *record) *plugins.Count { return &r.Turn }),
	85: text[record](func(r *record) *string { return &r.CacheMiss }),
	86: text[record](func(r *record) *string { return &r.CacheMissAt }),
	87: quantity[record, int64](func(r *record) *plugins.Count { return &r.CacheMissed }),
	88: quantity[record, plugins.Nanodollars](func(r *record) *plugins.Cost { return &r.CacheLoss }),
}

var feedbackWire = message[storage.Feedback]{
	1: integer[storage.Feedback, int64](func(f *storage.Feedback) *int64 { return &f.ID }),
	2: flag[storage.Feedback](func(f *storage.Feedback) *bool { return &f.Rating }),
	3: integer[storage.Feedback, moment](func(f *storage.Feedback) *moment { return &f.CreatedAt }),
}

var annotationWire = message[annotation]{
	1:  text[annotation](func(a *annotation) *string { return &a.Org }),
	2:  id[annotation](func(a *annotation) *uuid.UUID { return &a.RequestID }),
	3:  text[annotation](func(a *annotation) *string { return &a.SessionID }),
	4:  integer[annotation, moment](func(a *annotation) *moment { return &a.At }),
	5:  numbers[annotation](func(a *annotation) *map[string]float64 { return &a.Scores }),
	6:  sub[annotation, storage.Feedback]{func(a *annotation) **storage.Feedback { return &a.Feedback }, feedbackWire},
	7:  sub[annotation, storage.Property]{func(a *annotation) **storage.Property { return &a.Property }, propertyWire},
	8:  optional[annotation](func(a *annotation) **string { return &a.Tag }),
	9:  sub[annotation, storage.View]{func(a *annotation) **storage.View { return &a.View }, viewWire},
	10: sub[annotation, conversation]{func(a *annotation) **conversation { return &a.Conversation }, conversationWire},
}

type conversation = storage.ConversationChange

var conversationWire = message[conversation]{
	1: text[conversation](func(c *conversation) *string { return &c.ID }),
	2: flag[conversation](func(c *conversation) *bool { return &c.Created }),
	3: text[conversation](func(c *conversation) *string { return &c.User }),
	4: text[conversation](func(c *conversation) *string { return &c.Metadata }),
	5: texts[conversation](func(c *conversation) *[]string { return &c.Add }),
	6: texts[conversation](func(c *conversation) *[]string { return &c.Items }),
	7: text[conversation](func(c *conversation) *string { return &c.Remove }),
	8: flag[conversation](func(c *conversation) *bool { return &c.Deleted }),
}

var propertyWire = message[storage.Property]{
	1: text[storage.Property](func(p *storage.Property) *string { return &p.Name }),
	2: text[storage.Property](func(p *storage.Property) *string { return &p.Value }),
}

var viewWire = message[storage.View]{
	1: text[storage.View](func(v *storage.View) *string { return &v.Name }),
	2: text[storage.View](func(v *storage.View) *string { return &v.Screen }),
	3: text[storage.View](func(v *storage.View) *string { return &v.State }),
	4: integer[storage.View, moment](func(v *storage.View) *moment { return &v.UpdatedAt }),
}

var lossWire = message[loss]{
	1: text[loss](func(l *loss) *string { return &l.Reason }),
	2: integer[loss, int64](func(l *loss) *int64 { return &l.Count }),
	3: integer[loss, moment](func(l *loss) *moment { return &l.From }),
	4: integer[loss, moment](func(l *loss) *moment { return &l.To }),
	5: integer[loss, int64](func(l *loss) *int64 { return &l.Exchanges }),
}

var endWire = message[storage.Position]{
	1: integer[storage.Position, uint64](func(p *storage.Position) *uint64 { return &p.Segment }),
	2: integer[storage.Position, uint32](func(p *storage.Position) *uint32 { return &p.Ordinal }),
}

// contentWire is the content of an entry, and of a sealed block. The bodies
// come last, so that an append can write them from where they are.
var contentWire = message[content]{
	1:               text[content](func(c *content) *string { return &c.Request.Type }),
	2:               text[content](func(c *content) *string { return &c.Response.Type }),
	3:               labels[content](func(c *content) *map[string]string { return &c.Inputs }),
	4:               flag[content](func(c *content) *bool { return &c.Media }),
	requestData:     data[content](func(c *content) *[]byte { return &c.Request.Data }),
	requestData + 1: data[content](func(c *content) *[]byte { return &c.Response.Data }),
}

// requestData is the number of the first body.
const requestData = 5
