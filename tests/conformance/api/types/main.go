// Prints the fields of the API types named in roots(), one JSON object per type: what encoding/json does with them and
// how strategic merge patches treat them, and their numbers in protobuf. OpenAPI tells neither whether a field is a pointer nor whether it is left out
// when empty, and both decide what the API server answers.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	dra "k8s.io/api/resource/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

type field struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Pointer  bool   `json:"pointer,omitempty"`
	Omit     string `json:"omit,omitempty"`
	Strategy string `json:"strategy,omitempty"`
	MergeKey string `json:"mergeKey,omitempty"`
	Number   string `json:"number,omitempty"`
}

type description struct {
	Type   string  `json:"type"`
	Fields []field `json:"fields"`
}

var scalars = map[reflect.Type]string{
	reflect.TypeOf(meta.Time{}):            "time",
	reflect.TypeOf(meta.MicroTime{}):       "microtime",
	reflect.TypeOf(meta.Duration{}):        "duration",
	reflect.TypeOf(meta.FieldsV1{}):        "json",
	reflect.TypeOf(runtime.RawExtension{}): "json",
	reflect.TypeOf(quantity.Quantity{}):    "quantity",
	reflect.TypeOf(intstr.IntOrString{}):   "intstr",
	reflect.TypeOf([]byte{}):               "bytes",
}

func roots() []any {
	return []any{
		core.Node{}, core.Pod{}, core.Namespace{}, core.Event{}, core.ConfigMap{}, core.Secret{}, core.ServiceAccount{},
		core.Binding{}, dra.ResourceSlice{}, dra.ResourceClaim{}, dra.ResourceClaimTemplate{}, dra.DeviceClass{},
		batch.Job{}, apps.DaemonSet{}, coordination.Lease{}, meta.DeleteOptions{},
	}
}

func name(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	return strings.Join(parts[len(parts)-2:], ".") + "." + t.Name()
}

type walker struct {
	seen map[reflect.Type]bool
	out  []description
}

func (w *walker) typeName(t reflect.Type) string {
	if scalar, ok := scalars[t]; ok {
		return scalar
	}
	switch t.Kind() {
	case reflect.Slice:
		return "[]" + w.typeName(t.Elem())
	case reflect.Map:
		return "{}" + w.typeName(t.Elem())
	case reflect.Pointer:
		return w.typeName(t.Elem())
	case reflect.Struct:
		w.visit(t)
		return name(t)
	}
	return t.Kind().String()
}

// fields lists what JSON shows of a structure. An embedded one shows its fields beside the others in JSON and has a
// number of its own in protobuf, so numbers are paths: 2.5 is field 5 of the message in field 2.
func (w *walker) fields(t reflect.Type, prefix string) []field {
	fields := []field{}
	for i := range t.NumField() {
		f := t.Field(i)
		number := ""
		if parts := strings.Split(f.Tag.Get("protobuf"), ","); len(parts) > 1 {
			number = prefix + parts[1]
		}
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == "-" {
			continue
		}
		if tag == "" && f.Anonymous {
			fields = append(fields, w.fields(f.Type, number+".")...)
			continue
		}
		one := field{Name: tag, Type: w.typeName(f.Type), Pointer: f.Type.Kind() == reflect.Pointer, Number: number}
		for _, option := range strings.Split(options, ",") {
			if option == "omitempty" && one.Omit == "" || option == "omitzero" {
				one.Omit = option
			}
		}
		one.Strategy, one.MergeKey = f.Tag.Get("patchStrategy"), f.Tag.Get("patchMergeKey")
		fields = append(fields, one)
	}
	return fields
}

func (w *walker) visit(t reflect.Type) {
	if w.seen[t] {
		return
	}
	w.seen[t] = true
	fields := w.fields(t, "")
	w.out = append(w.out, description{Type: name(t), Fields: fields})
}

func main() {
	w := &walker{seen: map[reflect.Type]bool{}}
	for _, root := range roots() {
		w.visit(reflect.TypeOf(root))
	}
	encoder := json.NewEncoder(os.Stdout)
	for _, one := range w.out {
		if err := encoder.Encode(one); err != nil {
			panic(err)
		}
	}
}
