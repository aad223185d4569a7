package packaging

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The manual has every option of the Caddyfile, every metric and every code of an error that
// the code has.
func TestManualIsWhole(t *testing.T) {
	t.Parallel()
	var manual strings.Builder
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		manual.WriteString(read(t, page))
	}
	words := make(map[string]bool) // in code, alone or with arguments after them
	for i, code := range strings.FieldsFunc(manual.String(), func(r rune) bool { return r == '`' }) {
		for word := range strings.FieldsFuncSeq(code, func(r rune) bool { return strings.ContainsRune(" \n\t\"(){}[]:|,", r) }) {
			words[word] = words[word] || i > 0
		}
	}
	facts := factsOfCode(t)
	if len(facts) < 100 {
		t.Fatalf("the code has %d names: the test does not find them", len(facts))
	}
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		if !words[name] {
			t.Errorf("%s of %s is in no page of docs", name, facts[name])
		}
	}
}

// factsOfCode are the names that users meet, with their files.
func factsOfCode(t *testing.T) map[string]string {
	t.Helper()
	facts := make(map[string]string)
	for _, root := range []string{"../caddyfile", "../internal", "../modules", "../plugins", "../storage"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				for _, name := range namesIn(n) {
					facts[name] = path
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return facts
}

// namesIn are the options of directive.Options, the name of a metric, and the code of an error.
func namesIn(n ast.Node) (names []string) {
	switch n := n.(type) {
	case *ast.CompositeLit:
		if of, ok := n.Type.(*ast.SelectorExpr); ok && of.Sel.Name == "Options" {
			for _, e := range n.Elts {
				if e, ok := e.(*ast.KeyValueExpr); ok {
					names = append(names, text(e.Key))
				}
			}
		}
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.SelectorExpr); ok && strings.HasPrefix(f.Sel.Name, "New") && len(n.Args) > 1 && strings.HasPrefix(text(n.Args[0]), "weir_") {
			names = append(names, text(n.Args[0]))
		}
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Code" {
			names = append(names, text(n.Value))
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// text is a string literal, "" of all else.
func text(n ast.Expr) string {
	literal, ok := n.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	value, _ := strconv.Unquote(literal.Value) // which the parser has read
	return value
}
