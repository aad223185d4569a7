package clientconfig

import "bytes"

// envFormat edits .env files: a line has a name, an equals sign and a value.
type envFormat struct{}

func (envFormat) find(text []byte, path []string) (s span, found bool, _ error) {
	for start := 0; start < len(text); start = lineEnd(text, start) {
		line := bytes.TrimRight(text[start:lineEnd(text, start)], "\r\n")
		name, value, ok := bytes.Cut(line, []byte("="))
		name = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(name), []byte("export ")))
		if ok && string(name) == path[0] { // the last line counts
			end := start + len(line)
			s, found = span{end - len(bytes.TrimLeft(value, " \t")), end}, true
		}
	}
	return s, found, nil
}

func (envFormat) insert(text []byte, path []string, value string) ([]byte, error) {
	return appendLines(text, path[0]+"="+value+"\n"), nil
}

func (f envFormat) remove(text []byte, path []string) ([]byte, error) {
	s, _, err := f.find(text, path)
	return splice(text, span{lineStart(text, s.start), lineEnd(text, s.end)}, ""), err
}
