package translate

// Tag says something of whoever calls that the vendor's invoice shall have, such as the project.
type Tag struct{ Name, Value string }

// NotTagged is the code of a call that is refused because it would have no tags.
const NotTagged = "tag_not_possible"

// Tagger is a Provider whose vendor's invoice tells calls apart by tags. Every request that it makes
// has the tags of its Target; what cannot have them is refused with NotTagged.
type Tagger interface {
	// CheckTag returns why requests to a target cannot have a tag, as the end of a sentence that
	// begins with the tag, or nil if they can.
	CheckTag(t Target, tag Tag) error
}
