package main

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// A world as kube-scheduler would see it when it looks at one node for one pod.
type allocateRequest struct {
	Gates map[string]bool `json:"gates,omitempty"` // all that matter; nothing is on unless it is named
	Node  struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels,omitempty"`
	} `json:"node"`
	Slices    []*resourceapi.ResourceSlice `json:"slices"`
	Classes   []*resourceapi.DeviceClass   `json:"classes"`
	Claims    []*resourceapi.ResourceClaim `json:"claims"`              // the pod's, to be allocated
	Allocated []*resourceapi.ResourceClaim `json:"allocated,omitempty"` // others, with status.allocation
}

type allocateAnswer struct {
	Results  []resourceapi.AllocationResult `json:"results,omitempty"`
	Fits     bool                           `json:"fits"`
	Error    string                         `json:"error,omitempty"`
	NodeOnly bool                           `json:"nodeOnly,omitempty"`
	Steps    int64                          `json:"steps"`
}

type classLister []*resourceapi.DeviceClass

func (l classLister) List() ([]*resourceapi.DeviceClass, error) { return l, nil }

func (l classLister) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range l {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: "resource.k8s.io", Resource: "deviceclasses"}, name)
}

func allocate(raw json.RawMessage) (any, error) {
	var request allocateRequest
	if err := json.Unmarshal(raw, &request); err != nil {
		return nil, err
	}
	allocator, err := newAllocator(request)
	if err != nil {
		return nil, err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: request.Node.Name, Labels: request.Node.Labels}}
	results, err := allocator.Allocate(context.Background(), node, request.Claims)
	answer := allocateAnswer{Results: results, Fits: err == nil && results != nil, Steps: steps(allocator)}
	if err != nil {
		answer.Error = err.Error()
		answer.NodeOnly = isNodeOnly(err)
	}
	return answer, nil
}

func newAllocator(request allocateRequest) (structured.Allocator, error) {
	return structured.NewAllocator(
		context.Background(), allocatorFeatures(request.Gates),
		allocatedState(request.Allocated, request.Gates["DRAConsumableCapacity"]),
		classLister(request.Classes), request.Slices, dracel.NewCache(10, features(request.Gates)),
	)
}

// allocatedState counts what other claims hold, by the rules of the scheduler plugin: admin access holds nothing, and a
// share holds capacity instead of the device.
func allocatedState(claims []*resourceapi.ResourceClaim, consumable bool) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			if result.AdminAccess != nil && *result.AdminAccess {
				continue
			}
			id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			if !consumable || result.ShareID == nil {
				state.AllocatedDevices.Insert(id)
				continue
			}
			state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
			if result.ConsumedCapacity != nil {
				state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
			}
		}
	}
	return state
}

// steps reads how often the search went one level deeper; -1 where the allocator does not tell.
func steps(allocator structured.Allocator) int64 {
	method := reflect.ValueOf(allocator).MethodByName("GetStats")
	if !method.IsValid() {
		return -1
	}
	stats := reflect.Indirect(method.Call(nil)[0])
	if !stats.IsValid() {
		return -1
	}
	return stats.FieldByName("NumAllocateOneInvocations").Int()
}

func isNodeOnly(err error) bool {
	return nodeOnly != nil && errors.Is(err, nodeOnly)
}
