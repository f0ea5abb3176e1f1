package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A profile says what one release of a vendor's driver publishes. A value is a constant, the name of a fact about the
// PCI device it stands for, or one number for each GPU in bus order. The simulator reads the same files and more of
// their fields: which constants hang on the GPU's model, when the release came out.
type profile struct {
	Driver     string            `json:"driver"`
	Name       string            `json:"name"`
	Attributes map[string]value  `json:"attributes"`
	Capacity   map[string]string `json:"capacity"`
}

type value struct {
	String  *string `json:"string"`
	Int     *int64  `json:"int"`
	Version *string `json:"version"`
	From    string  `json:"from"`
	ByIndex []int64 `json:"intByIndex"`
}

func readProfile(path string) (*profile, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p := &profile{}
	if err := json.Unmarshal(data, p); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// attribute gives nil where the profile's driver leaves the attribute out: NUMA node -1, no root found.
func (v value) attribute(f function) (*resourceapi.DeviceAttribute, error) {
	if v.ByIndex != nil {
		if f.index >= len(v.ByIndex) {
			return nil, nil
		}
		return &resourceapi.DeviceAttribute{IntValue: &v.ByIndex[f.index]}, nil
	}
	switch v.From {
	case "":
		return &resourceapi.DeviceAttribute{StringValue: v.String, IntValue: v.Int, VersionValue: v.Version}, nil
	case "busID":
		return &resourceapi.DeviceAttribute{StringValue: &f.busID}, nil
	case "busIDBesideRoot":
		if f.root == "" {
			return nil, nil
		}
		return &resourceapi.DeviceAttribute{StringValue: &f.busID}, nil
	case "root":
		if f.root == "" {
			return nil, nil
		}
		return &resourceapi.DeviceAttribute{StringValue: &f.root}, nil
	case "uuid":
		return &resourceapi.DeviceAttribute{StringValue: &f.uuid}, nil
	case "numaNode":
		if f.numaNode < 0 {
			return nil, nil
		}
		return &resourceapi.DeviceAttribute{IntValue: &f.numaNode}, nil
	case "numaNodeEvenIfUnknown":
		return &resourceapi.DeviceAttribute{IntValue: &f.numaNode}, nil
	}
	return nil, fmt.Errorf("no fact is called %q", v.From)
}

func (p *profile) device(f function) (resourceapi.Device, error) {
	name := strings.NewReplacer("{index}", fmt.Sprint(f.index), "{render}", fmt.Sprint(128+f.index)).Replace(p.Name)
	d := resourceapi.Device{
		Name:       name,
		Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{},
		Capacity:   map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{},
	}
	for key, v := range p.Attributes {
		a, err := v.attribute(f)
		if err != nil {
			return d, fmt.Errorf("attribute %s: %w", key, err)
		}
		if a != nil {
			d.Attributes[resourceapi.QualifiedName(key)] = *a
		}
	}
	for key, text := range p.Capacity {
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return d, fmt.Errorf("capacity %s: %w", key, err)
		}
		d.Capacity[resourceapi.QualifiedName(key)] = resourceapi.DeviceCapacity{Value: q}
	}
	return d, nil
}
