package llmapp

import (
	"fmt"
	"reflect"
	"strings"
)

// checkNulls refuses a nil in the fields of a struct that are lists or maps of pointers: JSON allows null
// where an object stands.
func checkNulls(settings any) error {
	of := reflect.ValueOf(settings).Elem()
	for field, value := range of.Fields() {
		if field.Anonymous && field.IsExported() {
			if err := checkNulls(value.Addr().Interface()); err != nil {
				return err
			}
		}
		if kind := value.Kind(); kind != reflect.Slice && kind != reflect.Map || !field.IsExported() || value.Type().Elem().Kind() != reflect.Pointer {
			continue
		}
		for key, element := range value.Seq2() {
			if element.IsNil() {
				option, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				return fmt.Errorf("%s: %v is null: give it settings, or leave it out", option, key)
			}
		}
	}
	return nil
}
