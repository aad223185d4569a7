package translate

import (
	"net/url"
	"strings"

	"github.com/tidwall/gjson"
)

// Resolve returns what a $ref within a JSON Schema points to, such as "#/$defs/place". The result
// does not exist if the reference points elsewhere or nowhere. A pointer (RFC 6901) in a fragment is
// percent-encoded: the one to "a b" is "#/$defs/a%20b".
func Resolve(root gjson.Result, ref string) gjson.Result {
	pointer, local := strings.CutPrefix(ref, "#")
	pointer, err := url.PathUnescape(pointer)
	if !local || err != nil || pointer != "" && pointer[0] != '/' {
		return gjson.Result{}
	}
	v := root
	for key := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		switch key = unescapePointer.Replace(key); {
		case pointer == "":
		case v.IsArray():
			v = v.Get(gjson.Escape(key))
		default:
			object := v
			v = gjson.Result{}
			object.ForEach(func(name, member gjson.Result) bool {
				if name.Str == key {
					v = member
				}
				return name.Str != key
			})
		}
	}
	return v
}

// unescapePointer gives the keys of a JSON Pointer their own characters back.
var unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")
