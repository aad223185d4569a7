package clientconfig

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// yamlFormat edits YAML. A path is a list at the root and the name of an item in it; the value is
// the item's text.
type yamlFormat struct {
	empty string // what a file without content begins with
}

// list returns the list of a name at the root, and nil if the name is not there.
func (yamlFormat) list(text []byte, name string) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode || root.Style&yaml.FlowStyle != 0 {
		return nil, fmt.Errorf("expected %q and the like at the left margin", name+":")
	}
	for i := 0; i < len(root.Content); i += 2 {
		if root.Content[i].Value == name {
			list := root.Content[i+1]
			if list.Kind != yaml.SequenceNode || list.Style&yaml.FlowStyle != 0 || len(list.Content) == 0 {
				return nil, fmt.Errorf("line %d: %s has no items that begin with a dash: remove it, or write some", list.Line, name)
			}
			return list, nil
		}
	}
	return nil, nil
}

// lineOffset returns where a line begins. The first line is 1.
func lineOffset(text []byte, line int) (at int) {
	for ; line > 1; line-- {
		at = lineEnd(text, at)
	}
	return at
}

// dashOf returns where the dash of a list's item is, and where its line begins.
func dashOf(text []byte, item *yaml.Node) (dash, start int, err error) {
	start = lineOffset(text, item.Line)
	before, _, found := bytes.Cut(text[start:lineEnd(text, start)], []byte("-"))
	if !found || len(bytes.TrimSpace(before)) > 0 {
		return 0, 0, fmt.Errorf("line %d: write the dash and the first name of the item on one line", item.Line)
	}
	return start + len(before), start, nil
}

func (f yamlFormat) find(text []byte, path []string) (span, bool, error) {
	list, err := f.list(text, path[0])
	if list == nil || err != nil {
		return span{}, false, err
	}
	for _, item := range list.Content {
		for i := 0; item.Kind == yaml.MappingNode && i < len(item.Content); i += 2 {
			if item.Content[i].Value == "name" && item.Content[i+1].Value == path[1] {
				dash, start, err := dashOf(text, item)
				if err != nil {
					return span{}, false, err
				}
				end := lineEnd(text, start)
				for next := end; next < len(text); { // all lines that are further to the right belong to the item
					line := text[next:lineEnd(text, next)]
					content := bytes.TrimLeft(line, " ")
					inside := len(line)-len(content) > dash-start
					switch content = bytes.TrimSpace(content); {
					case len(content) == 0 || content[0] == '#' && !inside: // between lines of the item, or after it
						next += len(line)
						continue
					case !inside:
						return span{dash, end}, true, nil
					}
					next += len(line)
					end = next
				}
				return span{dash, end}, true, nil
			}
		}
	}
	return span{}, false, nil
}

func (f yamlFormat) insert(text []byte, path []string, value string) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte(f.empty)
	}
	list, err := f.list(text, path[0])
	if err != nil {
		return nil, err
	}
	if list == nil {
		return appendLines(text, path[0]+":\n  "+indent(value, "  ")+"\n"), nil
	}
	dash, at, err := dashOf(text, list.Content[0])
	if err != nil {
		return nil, err
	}
	blanks := strings.Repeat(" ", dash-at)
	return splice(text, span{at, at}, blanks+indent(value, blanks)+"\n"), nil
}

func (f yamlFormat) remove(text []byte, path []string) ([]byte, error) {
	s, _, err := f.find(text, path)
	if err != nil {
		return nil, err
	}
	start := lineStart(text, s.start)
	if list, err := f.list(text, path[0]); err == nil && len(list.Content) == 1 { // an empty list is null
		start = lineStart(text, start-1)
	}
	return splice(text, span{start, s.end}, ""), nil
}
