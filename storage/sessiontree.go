package storage

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
)

// SessionTreeQuery asks what the parts of a session cost, each part by itself and together with
// all parts beneath it.
type SessionTreeQuery struct {
	Org string
	// Session is the id of a session, or of the first request of a tree.
	Session string
	By      TreeNodes
}

// TreeNodes says what a node of a session's tree is.
type TreeNodes string

const (
	// ByConversation makes a node of each conversation: its turns and their attempts. Beneath
	// the node are the conversations of the sub-agents that the conversation asked for. The
	// node's id is the id of its first request.
	ByConversation TreeNodes = "conversation"
	// ByPath makes a node of each session path, and of the paths above it. The node's id is
	// the path, "/" for requests without a path.
	ByPath TreeNodes = "path"
)

// ParseTreeNodes reads one of the TreeNodes.
func ParseTreeNodes(s string) (TreeNodes, error) {
	return oneOf(s, []TreeNodes{ByConversation, ByPath})
}

// SessionNode is a node of a session's tree.
type SessionNode struct {
	ID string `json:"id"`
	// ParentID is nil at the top, where a session may have several nodes.
	ParentID *string `json:"parent_id"`
	Depth    int     `json:"depth"`
	// CreatedAt is when the first request of the node, or of a node beneath it, began.
	CreatedAt Timestamp `json:"created_at"`
	// Own is what the requests of the node add up to. Total includes the requests of all
	// nodes beneath it.
	Own   NodeTotals `json:"own"`
	Total NodeTotals `json:"total"`
}

// NodeTotals are what requests add up to, as the fields of a Session are.
type NodeTotals struct {
	Cost                plugins.Cost  `json:"cost"`
	Requests            int64         `json:"requests"`
	RequestsWithoutCost int64         `json:"requests_without_cost"`
	PromptTokens        plugins.Count `json:"prompt_tokens"`
	CompletionTokens    plugins.Count `json:"completion_tokens"`
	TotalTokens         plugins.Count `json:"total_tokens"`
}

// MaxTreeRequests bounds the requests of a session whose tree is asked for.
const MaxTreeRequests = 50_000

// ErrTreeTooLarge: the session has more than MaxTreeRequests.
var ErrTreeTooLarge = errors.New("the session has too many requests for a tree")

// maxPathDepth bounds the nodes above the node of a path, not counting "/".
const maxPathDepth = 32

// treePage is how many records are read at a time.
const treePage = 1000

// Answer returns the nodes of the session. Each node comes before the nodes beneath it, and
// the oldest come first. The error is ErrNotFound for a session without requests.
func (q *SessionTreeQuery) Answer(ctx context.Context, b Backend) ([]SessionNode, error) {
	requests, err := q.read(ctx, b)
	if err != nil {
		return nil, err
	}
	t := &sessionTree{requests: make(map[uuid.UUID]*treeRequest, len(requests)), paths: make(map[string]*treeNode)}
	for _, r := range requests {
		t.requests[r.id] = r
	}
	for _, r := range requests {
		var n *treeNode
		if q.By == ByPath {
			n = t.path(r.path)
		} else {
			n = t.conversation(r)
		}
		addTotals([]*Totals{&n.own}, r.row)
		for ; n != nil && !n.listed; n = n.above {
			n.listed, n.CreatedAt = true, r.row.CreatedAt[0]
			t.nodes = append(t.nodes, n)
		}
	}
	return t.answer(), nil
}

// treeRequest is a request of the session.
type treeRequest struct {
	id     uuid.UUID
	before uuid.UUID // the call that the request is an attempt at, or continues
	begins bool      // the request begins a conversation
	path   string
	row    *RowBatch // of one
	node   *treeNode // nil until its conversation is looked for
}

// read reads the requests of the session, the oldest first.
func (q *SessionTreeQuery) read(ctx context.Context, b Backend) ([]*treeRequest, error) {
	requests, err := q.requestsWith(ctx, b, "session_id")
	if err != nil || len(requests) > 0 {
		return requests, err
	}
	id, err := uuid.Parse(q.Session)
	if err != nil {
		return nil, ErrNotFound
	}
	if requests, err = q.requestsWith(ctx, b, "root_request_id"); err != nil {
		return nil, err
	}
	root, err := b.Request(ctx, RecordKey{q.Org, id})
	switch {
	case err == nil:
		requests = append(requests, newTreeRequest(root))
		slices.SortStableFunc(requests, func(a, b *treeRequest) int { return cmp.Compare(a.row.CreatedAt[0], b.row.CreatedAt[0]) })
		return requests, nil
	case errors.Is(err, ErrNotFound) && len(requests) > 0: // it is older than what is kept
		return requests, nil
	}
	return nil, err
}

// requestsWith reads the requests whose field has the query's Session as value.
func (q *SessionTreeQuery) requestsWith(ctx context.Context, b Backend, field string) (requests []*treeRequest, err error) {
	page := &RequestQuery{
		Org:    q.Org,
		Filter: &Leaf{Field: LookupField(RequestResponse, field), Op: Equals, Text: q.Session},
		Sort:   []Sort{{Key: SortCreatedAt}},
		Limit:  treePage,
	}
	ask := func(page *RequestQuery) ([]*Record, error) { return b.Requests(ctx, page) }
	err = page.EachPage(ask, func(records []*Record) error {
		for _, r := range records {
			requests = append(requests, newTreeRequest(r))
		}
		if len(requests) > MaxTreeRequests {
			return ErrTreeTooLarge
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return requests, nil
}

func newTreeRequest(r *Record) *treeRequest {
	return &treeRequest{
		id:     r.ID,
		before: cmp.Or(r.AttemptOf, r.ParentID),
		begins: r.AttemptOf == uuid.Nil && r.Turn == plugins.Known(int64(1)),
		path:   r.SessionPath,
		row:    newRow(r),
	}
}

// sessionTree is a tree while it is made.
type sessionTree struct {
	requests map[uuid.UUID]*treeRequest
	paths    map[string]*treeNode
	nodes    []*treeNode // the nodes that have requests, or a node beneath that has
}

type treeNode struct {
	SessionNode
	above      *treeNode
	beneath    []*treeNode
	own, total Totals
	listed     bool
	answered   bool
}

// conversation is the node of a request: the node of the request before it, unless the
// request begins a conversation. Then the request has a node of its own beneath that node.
func (t *sessionTree) conversation(r *treeRequest) *treeNode {
	if r.node != nil {
		return r.node
	}
	r.node = &treeNode{SessionNode: SessionNode{ID: r.id.String()}} // first: the search may be a ring
	if before := t.requests[r.before]; before != nil {
		if n := t.conversation(before); r.begins {
			r.node.above = n
		} else {
			r.node = n
		}
	}
	return r.node
}

// path is the node of a session path. Slashes count once.
func (t *sessionTree) path(path string) *treeNode {
	id, n := "", t.pathNode("/", nil)
	steps := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	for i, step := range steps {
		if i == maxPathDepth {
			step = strings.Join(steps[i:], "/")
		}
		id += "/" + step
		if n = t.pathNode(id, n); i == maxPathDepth {
			break
		}
	}
	return n
}

func (t *sessionTree) pathNode(id string, above *treeNode) *treeNode {
	n := t.paths[id]
	if n == nil {
		n = &treeNode{SessionNode: SessionNode{ID: id}, above: above}
		t.paths[id] = n
	}
	return n
}

// answer puts the nodes in order, and adds up what is beneath each.
func (t *sessionTree) answer() []SessionNode {
	for _, n := range t.nodes {
		if n.above != nil {
			n.above.beneath = append(n.above.beneath, n)
		}
	}
	answer := make([]SessionNode, 0, len(t.nodes))
	var visit func(n *treeNode)
	visit = func(n *treeNode) {
		i := len(answer)
		n.answered = true
		answer = append(answer, n.SessionNode)
		n.total = n.own
		for _, below := range n.beneath {
			if !below.answered {
				below.ParentID, below.Depth = &answer[i].ID, n.Depth+1
				visit(below)
				n.total.merge(&below.total)
			}
		}
		answer[i].Own, answer[i].Total = newNodeTotals(&n.own), newNodeTotals(&n.total)
	}
	for _, n := range t.nodes {
		if n.above == nil {
			visit(n)
		}
	}
	for _, n := range t.nodes { // the nodes of a ring; imported records may make rings
		if !n.answered {
			visit(n)
		}
	}
	return answer
}

func newNodeTotals(t *Totals) NodeTotals {
	return NodeTotals{t.Cost, t.Requests, t.WithoutCost, t.Input, t.Output, t.tokens()}
}
