package reconcile

import (
	"regexp"
	"slices"
	"strings"
)

// wordPattern finds the words and the numbers of a model's name.
var wordPattern = regexp.MustCompile(`[a-z]+|[0-9]+`)

// releasePattern finds what names a release: a date, or a version of Bedrock's.
var releasePattern = regexp.MustCompile(`(-v?[0-9]+)?:[0-9]+|-v[0-9]+$|[-@](20[0-9]{6}|20[0-9]{2}-[0-9]{2}-[0-9]{2})`)

// namePattern finds where a name in mixed case has a new word, as in Claude4.6Sonnet.
var namePattern = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// vagueWords are words of names that some spellings of a model lack: makers, places and forms.
var vagueWords = []string{
	"anthropic", "amazon", "meta", "mistral", "ai", "google", "publishers", "models", "bedrock", "edition", "mantle", "instruct",
	"us", "eu", "apac", "au", "jp", "ca", "global", "0",
}

// wordsOf are the words of a model's name, sorted, by which bills that have names of their own meet
// those of records. Nothing else is taken for the same: Claude Sonnet 4 is not Claude Sonnet 4.5.
func wordsOf(name string, without ...string) string {
	name = releasePattern.ReplaceAllString(name, "")
	name = strings.ToLower(namePattern.ReplaceAllString(name, "$1 $2"))
	words := slices.DeleteFunc(wordPattern.FindAllString(name, -1), func(word string) bool {
		return slices.Contains(vagueWords, word) || slices.Contains(without, word)
	})
	slices.Sort(words)
	return strings.Join(words, " ")
}

// byWords are the models of records by their words, "" for words that several have.
func (r *Records) byWords() map[string]string {
	models := make(map[string]string)
	for s := range r.totals {
		words := wordsOf(s.model)
		if other, ok := models[words]; ok && other != s.model {
			models[words] = ""
			continue
		}
		models[words] = s.model
	}
	return models
}
