package plugins

import (
	"reflect"
	"testing"
)

// A field that Add, Merge or Raise forgot would lose what a provider has billed.
func TestUsageTakesEachField(t *testing.T) {
	var one, twice Usage
	for i := range reflect.TypeFor[Usage]().NumField() {
		for times, u := range map[int64]*Usage{1: &one, 2: &twice} {
			field := reflect.ValueOf(u).Elem().Field(i)
			field.FieldByName("N").SetInt(times * int64(i+1))
			field.FieldByName("Valid").SetBool(true)
		}
	}
	var merged Usage
	if merged.Merge(one); merged != one {
		t.Errorf("Merge: %+v", merged)
	}
	if merged.Merge(Usage{}); merged != one {
		t.Errorf("Merge of what is unknown: %+v", merged)
	}
	if merged.Raise(Usage{}); merged != one {
		t.Errorf("Raise by what is unknown: %+v", merged)
	}
	raised := one
	if raised.Raise(twice); raised != twice {
		t.Errorf("Raise: %+v", raised)
	}
	if raised.Raise(one); raised != twice {
		t.Errorf("Raise by less: %+v", raised)
	}
	if merged.Add(one); merged != twice {
		t.Errorf("Add: %+v", merged)
	}
}
