package main

import (
	"context"
	"encoding/json"
	"os"
	"runtime"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apiserver/pkg/cel/environment"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// A device as the allocator hands it to a selector: the fields carry the names they have in a ResourceSlice.
type device struct {
	Driver                   string                                                    `json:"driver"`
	Attributes               map[resourceapi.QualifiedName]resourceapi.DeviceAttribute `json:"attributes,omitempty"`
	Capacity                 map[resourceapi.QualifiedName]resourceapi.DeviceCapacity  `json:"capacity,omitempty"`
	AllowMultipleAllocations *bool                                                     `json:"allowMultipleAllocations,omitempty"`
}

type celRequest struct {
	Gates       map[string]bool `json:"gates,omitempty"`
	Environment string          `json:"environment,omitempty"` // "new": API validation; otherwise as the scheduler
	Expression  string          `json:"expression"`
	Devices     []device        `json:"devices,omitempty"`
	File        string          `json:"file,omitempty"`   // cel-bench: one device per line
	Rounds      int             `json:"rounds,omitempty"` // cel-bench
}

type celAnswer struct {
	Type    string   `json:"type,omitempty"`
	MaxCost uint64   `json:"maxCost,omitempty"`
	Error   string   `json:"error,omitempty"`
	Results []result `json:"results,omitempty"`
}

type result struct {
	Match bool    `json:"match"`
	Error string  `json:"error,omitempty"`
	Cost  *uint64 `json:"cost,omitempty"`
}

func compile(request celRequest) dracel.CompilationResult {
	options := dracel.Options{}
	if request.Environment == "new" {
		kind := environment.NewExpressions
		options.EnvType = &kind
	}
	return dracel.GetCompiler(features(request.Gates)).CompileCELExpression(request.Expression, options)
}

func view(d device) dracel.Device {
	return dracel.Device{
		Driver: d.Driver, Attributes: d.Attributes, Capacity: d.Capacity,
		AllowMultipleAllocations: d.AllowMultipleAllocations,
	}
}

func evaluate(raw json.RawMessage) (any, error) {
	var request celRequest
	if err := json.Unmarshal(raw, &request); err != nil {
		return nil, err
	}
	compiled := compile(request)
	if compiled.Error != nil {
		return celAnswer{Error: compiled.Error.Detail, MaxCost: compiled.MaxCost}, nil
	}
	out := celAnswer{Type: compiled.OutputType.String(), MaxCost: compiled.MaxCost}
	for _, d := range request.Devices {
		out.Results = append(out.Results, match(compiled, d))
	}
	return out, nil
}

func match(compiled dracel.CompilationResult, d device) (out result) {
	matched, details, err := compiled.DeviceMatches(context.Background(), view(d))
	out.Match = matched
	if details != nil {
		out.Cost = details.ActualCost()
	}
	if err != nil {
		out.Error = err.Error()
	}
	return out
}

// measure times DeviceMatches alone over the devices of a file. Each round visits every device once, so that nothing
// but the code itself is warm; the answer holds one duration for each round.
func measure(raw json.RawMessage) (any, error) {
	var request celRequest
	if err := json.Unmarshal(raw, &request); err != nil {
		return nil, err
	}
	compiled := compile(request)
	if compiled.Error != nil {
		return celAnswer{Error: compiled.Error.Detail}, nil
	}
	file, err := os.Open(request.File)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var devices []dracel.Device
	for decoder := json.NewDecoder(file); decoder.More(); {
		var d device
		if err := decoder.Decode(&d); err != nil {
			return nil, err
		}
		devices = append(devices, view(d))
	}
	runtime.GC()
	answer := struct {
		Devices int     `json:"devices"`
		Matches int     `json:"matches"`
		Nanos   []int64 `json:"nanos"`
	}{Devices: len(devices)}
	for range max(request.Rounds, 1) {
		answer.Matches = 0
		start := time.Now()
		for _, d := range devices {
			matched, _, err := compiled.DeviceMatches(context.Background(), d)
			if err != nil {
				return nil, err
			}
			if matched {
				answer.Matches++
			}
		}
		answer.Nanos = append(answer.Nanos, time.Since(start).Nanoseconds())
	}
	return answer, nil
}
