package translate

import (
	"errors"
	"strconv"
	"strings"

	"github.com/weirhq/weir/plugins"
)

// Names maps the fields of a request to the names that a client of another API has for
// them. Errors and warnings name the fields that the client sent.
type Names struct {
	// Fields are the client's paths by those of Responses, such as
	// "response_format" by "text.format". What is below a field is below it there.
	// "" is a field that the client did not send: it is not warned of.
	Fields map[string]string
	// Items are where the items of the input come from.
	Items []ItemName
}

// ItemName is where an item of the input comes from.
type ItemName struct {
	// Path is that of the message, block or call, such as "messages[2].tool_calls[0]".
	Path string
	// First is the position of the item's first part in the content at Path.
	First int
}

// Path returns the client's path for one of Responses. It is the same where Names
// is nil or does not have it.
func (n *Names) Path(path string) string {
	if n == nil {
		return path
	}
	if i, below, ok := cutIndex(path, "input"); ok && i < len(n.Items) {
		return n.Items[i].below(below)
	}
	for end := len(path); end > 0; end = strings.LastIndexAny(path[:end], ".[") {
		if name, ok := n.Fields[path[:end]]; ok {
			return name + path[end:]
		}
	}
	return path
}

// below returns the client's path of a part of the item's content, or else of the item.
func (n ItemName) below(path string) string {
	if i, _, ok := cutIndex(path, ".content"); ok {
		return indexPath(n.Path+".content", n.First+i)
	}
	if strings.HasPrefix(path, ".content") {
		return n.Path + ".content"
	}
	return n.Path
}

func cutIndex(path, array string) (i int, below string, ok bool) {
	path, ok = strings.CutPrefix(path, array+"[")
	if !ok {
		return 0, "", false
	}
	digits, below, ok := strings.Cut(path, "]")
	i, err := strconv.Atoi(digits)
	return i, below, ok && err == nil && i >= 0
}

// Error returns err with the client's path where it is one of plugins.Error that
// names a field.
func (n *Names) Error(err error) error {
	e, ok := errors.AsType[*plugins.Error](err)
	if n == nil || !ok || e.Param == "" {
		return err
	}
	named := *e
	named.Param = n.Path(e.Param)
	named.Message = strings.ReplaceAll(e.Message, "'"+e.Param+"'", "'"+named.Param+"'")
	return &named
}

// Warnings returns warnings with the client's paths.
func (n *Names) Warnings(warnings []string) []string {
	if n == nil {
		return warnings
	}
	var named []string
	for _, w := range warnings {
		path, done, _ := strings.Cut(w, ": ")
		if path = n.Path(path); path != "" {
			named = append(named, path+": "+done)
		}
	}
	return named
}
