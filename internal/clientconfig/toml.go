package clientconfig

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlFormat edits TOML. A path of one name is a key before all tables, and its value is the
// key's. A longer path is a table, and its value is the table's text, with its header and with the
// tables in it that follow.
type tomlFormat struct{}

func (tomlFormat) find(text []byte, path []string) (s span, found bool, err error) {
	var document map[string]any
	if err := toml.Unmarshal(text, &document); err != nil {
		return span{}, false, err
	}
	var p unstable.Parser
	p.Reset(text)
	inTable, inOurs := false, false
	end := 0 // of the last line that is neither blank nor a comment
	for p.NextExpression() {
		e := p.Expression()
		var key []string
		var at unstable.Range
		for k := e.Key(); k.Next(); {
			if len(key) == 0 {
				at = k.Node().Raw
			}
			key = append(key, string(k.Node().Data))
		}
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			inTable = true
			ours := len(path) > 1 && len(key) >= len(path) && slices.Equal(key[:len(path)], path)
			switch start := lineStart(text, int(at.Offset)); {
			case ours && !found && e.Kind == unstable.Table && len(key) == len(path):
				s, found = span{start: start}, true
			case ours && !inOurs:
				return span{}, false, fmt.Errorf("%s is there in several places: remove them", strings.Join(path, "."))
			}
			inOurs = ours
			end = lineEnd(text, int(at.Offset))
		case unstable.KeyValue:
			if inTable && !inOurs {
				continue
			}
			expression := e.Raw
			end = lineEnd(text, int(expression.Offset+expression.Length)-1)
			switch {
			case inTable:
			case len(path) == 1 && slices.Equal(key, path):
				eq := int(at.Offset) + bytes.IndexByte(text[at.Offset:], '=') + 1
				value := bytes.TrimSpace(text[eq : expression.Offset+expression.Length])
				start := eq + bytes.Index(text[eq:], value)
				return span{start, start + len(value)}, true, nil
			case len(path) > 1 && key[0] == path[0]:
				return span{}, false, fmt.Errorf("%s is no table: write [%s] in its place", key[0], strings.Join(path, "."))
			}
		}
		if inOurs {
			s.end = end
		}
	}
	return s, found, p.Error()
}

func (tomlFormat) insert(text []byte, path []string, value string) ([]byte, error) {
	if len(path) == 1 {
		return splice(text, span{}, path[0]+" = "+value+"\n"), nil
	}
	if len(bytes.TrimSpace(text)) > 0 {
		value = "\n" + value
	}
	return appendLines(text, value), nil
}

func (f tomlFormat) remove(text []byte, path []string) ([]byte, error) {
	s, _, err := f.find(text, path)
	if err != nil {
		return nil, err
	}
	if len(path) == 1 {
		return splice(text, span{lineStart(text, s.start), lineEnd(text, s.end)}, ""), nil
	}
	if before := text[:s.start]; bytes.HasSuffix(before, []byte("\n\n")) || bytes.HasSuffix(before, []byte("\n\r\n")) {
		s.start = lineStart(text, s.start-1)
	}
	return splice(text, s, ""), nil
}
