package catalog

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// fault is an error in a catalogue's text, with the JSON path to it.
type fault struct {
	path string
	err  error
}

func (f *fault) Error() string { return f.path + ": " + f.err.Error() }

func wrapStep(step string, err error) error {
	if err == nil {
		return nil
	}
	f, ok := errors.AsType[*fault](err)
	switch {
	case !ok:
		return &fault{step, err}
	case strings.HasPrefix(f.path, "["):
		return &fault{step + f.path, f.err}
	}
	return &fault{step + "." + f.path, f.err}
}

func object(v gjson.Result, f func(key string, v gjson.Result) error) (err error) {
	if !v.IsObject() {
		return errors.New("must be an object")
	}
	v.ForEach(func(key, v gjson.Result) bool {
		err = wrapStep(key.Str, f(key.Str, v))
		return err == nil
	})
	return err
}

func array(v gjson.Result, f func(gjson.Result) error) (err error) {
	if !v.IsArray() {
		return errors.New("must be an array")
	}
	i := 0
	v.ForEach(func(_, v gjson.Result) bool {
		if e := f(v); e != nil {
			err = wrapStep(fmt.Sprintf("[%d]", i), e)
		}
		i++
		return err == nil
	})
	return err
}

// decoder reads a catalogue's text into structs. Equal lists and strings are shared, which halves the memory.
type decoder struct {
	lists   map[string][]string
	strings map[string]string
	fields  map[reflect.Type]map[string][]int
	fresh   []*Model // those of the provider at hand
}

var errField = errors.New("unknown field; docs/catalog.md lists those there are")

// text reads a string, which shares no memory with the whole text.
func (d *decoder) text(v gjson.Result, to *string) error {
	if v.Type != gjson.String || v.Str == "" {
		return errors.New("must be a string that is not empty")
	}
	s, ok := d.strings[v.Str]
	if !ok {
		s = strings.Clone(v.Str)
		d.strings[s] = s
	}
	*to = s
	return nil
}

func (d *decoder) list(v gjson.Result, to *[]string) error {
	if l, ok := d.lists[v.Raw]; ok {
		*to = l
		return nil
	}
	l := []string{}
	err := array(v, func(v gjson.Result) error {
		l = append(l, "")
		return d.text(v, &l[len(l)-1])
	})
	*to = slices.Clip(l)
	d.lists[strings.Clone(v.Raw)] = *to
	return err
}

func (d *decoder) value(v gjson.Result, to reflect.Value) error {
	switch to := to.Addr().Interface().(type) {
	case *string:
		return d.text(v, to)
	case *[]string:
		return d.list(v, to)
	case *bool:
		if !v.IsBool() {
			return errors.New("must be true or false")
		}
		*to = v.Bool()
		return nil
	case *int64:
		*to = v.Int()
		if v.Type != gjson.Number || *to < 0 || float64(*to) != v.Num || *to > 1<<53 {
			return errors.New("must be a whole number, 0 or above")
		}
		return nil
	case encoding.TextUnmarshaler:
		switch v.Type {
		case gjson.Number:
			return to.UnmarshalText([]byte(v.Raw)) // exactly
		case gjson.String:
			return to.UnmarshalText([]byte(v.Str))
		}
		return errors.New("must be a string")
	}
	switch to.Kind() {
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		return d.value(v, to.Elem())
	case reflect.Slice:
		to.SetZero()
		err := array(v, func(v gjson.Result) error {
			to.Set(reflect.Append(to, reflect.Zero(to.Type().Elem())))
			return d.value(v, to.Index(to.Len()-1))
		})
		if err == nil && to.Len() == 0 && to.Type() == reflect.TypeFor[[]Match]() {
			return errors.New("must not be empty")
		}
		to.SetCap(to.Len())
		return err
	}
	fields, ok := d.fields[to.Type()]
	if !ok {
		fields = fieldsOf(to.Type())
		d.fields[to.Type()] = fields
	}
	err := object(v, func(key string, v gjson.Result) error {
		i, ok := fields[key]
		if !ok {
			return errField
		}
		return d.value(v, to.FieldByIndex(i))
	})
	if err == nil && to.Type() == reflect.TypeFor[Match]() && len(v.Map()) != 1 {
		return errors.New("must have one rule; put several into \"or\" or \"and\"")
	}
	return err
}

func fieldsOf(t reflect.Type) map[string][]int {
	fields := make(map[string][]int)
	for _, field := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "-" && !field.Anonymous {
			fields[name] = field.Index
		}
	}
	return fields
}

// decode reads a catalogue's text into c, whose values it replaces.
func (c *Catalog) decode(src []byte) error {
	if !gjson.ValidBytes(src) {
		return errors.New("is not JSON; check its commas and quotes")
	}
	d := decoder{lists: make(map[string][]string), strings: make(map[string]string), fields: make(map[reflect.Type]map[string][]int)}
	err := object(gjson.ParseBytes(src), func(key string, v gjson.Result) error {
		switch key {
		case "version":
			return d.text(v, &c.version)
		case "sources":
			return nil // for people
		case "providers":
			return array(v, func(v gjson.Result) error { return d.provider(c, v) })
		}
		return errField
	})
	return err
}

func (d *decoder) provider(c *Catalog, v gjson.Result) error {
	var id string
	if err := d.text(v.Get("id"), &id); err != nil {
		return wrapStep("id", err)
	}
	p := c.providers[id]
	if p == nil {
		p = &provider{id: id, named: make(map[string]*Model)}
		c.providers[id] = p
		c.order = append(c.order, p)
	}
	p.copyModels()
	err := object(v, func(key string, v gjson.Result) error {
		switch key {
		case "id":
			return nil
		case "fallback":
			return d.list(v, &p.fallback)
		case "models":
			return array(v, func(v gjson.Result) error { return d.model(p, v) })
		}
		return errField
	})
	if err != nil {
		return err
	}
	p.index(d.fresh)
	d.fresh = nil
	return nil
}

func (d *decoder) model(p *provider, v gjson.Result) error {
	var id string
	if err := d.text(v.Get("id"), &id); err != nil {
		return wrapStep("id", err)
	}
	m := p.named[id]
	if m == nil || m.ID != id { // an alias of another is no model yet
		m = &Model{Provider: p.id, ID: id}
		p.models = append(p.models, m)
		p.named[id] = m
	}
	if err := d.value(v, reflect.ValueOf(m).Elem()); err != nil {
		return err
	}
	d.fresh = append(d.fresh, m)
	return nil
}
