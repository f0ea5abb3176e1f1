package main

import (
	"encoding/json"
	"os"
	"runtime/debug"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8sjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// What the last questions read and decoded: kept, so that whoever looks at this process sees what holding it takes.
var (
	loadedFile   []byte
	loadedSlices *resourceapi.ResourceSliceList
)

// readFile holds a file's bytes, so that their memory is not taken for that of the decoded objects.
func readFile(raw json.RawMessage) (any, error) {
	var question struct {
		File string `json:"file"`
	}
	if err := json.Unmarshal(raw, &question); err != nil {
		return nil, err
	}
	content, err := os.ReadFile(question.File)
	if err != nil {
		return nil, err
	}
	loadedFile, loadedSlices = content, nil
	debug.FreeOSMemory()
	return map[string]int{"bytes": len(content)}, nil
}

// loadSlices decodes the file as client-go does when the API server answers a list in JSON. What the decoder left over is
// given back to the system afterwards, outside the time measured.
func loadSlices(json.RawMessage) (any, error) {
	scheme := runtime.NewScheme()
	if err := resourceapi.AddToScheme(scheme); err != nil {
		return nil, err
	}
	decoder := k8sjson.NewSerializerWithOptions(k8sjson.DefaultMetaFactory, scheme, scheme, k8sjson.SerializerOptions{})
	loadedSlices = nil
	debug.FreeOSMemory()
	list := &resourceapi.ResourceSliceList{}
	start := time.Now()
	if _, _, err := decoder.Decode(loadedFile, nil, list); err != nil {
		return nil, err
	}
	nanos := time.Since(start).Nanoseconds()
	loadedSlices = list
	debug.FreeOSMemory()
	return map[string]int64{"slices": int64(len(loadedSlices.Items)), "nanos": nanos}, nil
}
