package demand

import (
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// Countable reports whether the length of an answer that was broken off tells its cost: the
// provider has stated the input, or has read no more than the text of the request, and bills
// nothing beside the model's tokens.
func Countable(d plugins.Dialect, request *plugins.Object, input plugins.Count) bool {
	r := Of(d, request, nil)
	return len(request.Members) > 0 && !r.Searches && r.Painters == nil && r.Advisors == nil && (input.Valid || !r.Unbounded && r.Pictures == 0 && r.Audio == 0)
}

// Written returns how many bytes of an answer the model has written, and is false if the
// answer does not tell.
func Written(d plugins.Dialect, answer storage.Body) (n int64, ok bool) {
	stored, _ := observe.Transcript(d).Stored(answer.Type, answer.Data)
	for _, list := range gjson.GetManyBytes(stored, "output", "output.message.content", "choices", "content", "candidates") {
		if list.IsArray() {
			return Said(list), true
		}
	}
	return 0, false
}
