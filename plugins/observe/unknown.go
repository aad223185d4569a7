package observe

import (
	"strings"
)

// unknown reads traffic whose dialect no path told, until a sign shows the dialect.
var unknown = unknownDialect{
	dialect: *newDialect(Dialect{
		Request: tables(modelRequest, openAIParts, anthropicParts, geminiParts),
		Response: tables(errorFields.Under("error"), Table{
			"id":    ResponseID,
			"model": Model,
			"type":  shape,
		}),
	}),
	signs: make(map[string][]sign),
}

// unknownDialect is the dialect of a response that was not recognized yet, and the
// signs of all others by the last step of their paths.
type unknownDialect struct {
	dialect
	signs map[string][]sign
}

// sign is the beginning of a value's JSON that only responses of a dialect have.
type sign struct {
	json string
	of   *dialect
}

func (u *unknownDialect) addSign(s string, of *dialect) {
	path, json, ok := strings.Cut(s, ":")
	if !ok {
		panic("observe: the sign " + s + " of the dialect " + string(of.Name) + " has no colon")
	}
	u.response.add(Table{path: shape})
	key := path[strings.LastIndexByte(path, '.')+1:]
	u.signs[key] = append(u.signs[key], sign{json, of})
}

// fits reports whether v begins as the sign says.
func (s *sign) fits(v value) bool {
	switch v.kind {
	case object:
		return strings.HasPrefix("{", s.json)
	case array:
		return strings.HasPrefix("[", s.json)
	case text:
		if inside, ok := strings.CutPrefix(s.json, `"`); ok && inside != "" {
			return strings.TrimSuffix(inside, `"`) == string(v.bytes)
		}
		return strings.HasPrefix(`"`, s.json)
	}
	return s.json == "" && v.kind != null
}

// shown returns the dialect that v is a sign of, nil if v is no sign. If two dialects have
// the same sign, it returns the one whose responses have an id if and only if hasID is true.
func (u *unknownDialect) shown(v value, hasID bool) (found *dialect) {
	for _, s := range u.signs[v.key] {
		if s.fits(v) && (found == nil || s.of.hasID == hasID) {
			found = s.of
		}
	}
	return found
}

// shape adopts the dialect that v shows, and reads v by it.
func (x *observer) shape(v value) {
	d := unknown.shown(v, x.seen.ResponseID != "")
	if d == nil {
		if v.key == "type" {
			x.event(v.bytes)
		}
		return
	}
	x.adopt(d.Name)
	if n := x.scan.rebase(x.scan.root, v.key); n != nil && n.field != none {
		x.value(n.field, v)
	}
}
