package main

import (
	"context"
	"encoding/json"
	"os"
	"runtime"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The world of the last question, so that rounds can be asked for one at a time.
var (
	lastFile  string
	lastWorld *allocateRequest
)

func benchWorld(file string) (*allocateRequest, error) {
	if file == lastFile {
		return lastWorld, nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	world := &allocateRequest{}
	if err := json.Unmarshal(content, world); err != nil {
		return nil, err
	}
	lastFile, lastWorld = file, world
	return world, nil
}

// threadTime is the processor time of this thread alone: what a busy machine does not stretch, and without the work that
// the garbage collector does elsewhere.
func threadTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// measureAllocate asks about every node of a world in a file, one after the other, and times only that: the allocator is
// made anew for each round, as the scheduler makes one for each pod; decoding is not counted.
func measureAllocate(raw json.RawMessage) (any, error) {
	var question struct {
		File   string                       `json:"file"`
		Nodes  []string                     `json:"nodes"`
		Claims []*resourceapi.ResourceClaim `json:"claims"`
		Rounds int                          `json:"rounds"`
	}
	if err := json.Unmarshal(raw, &question); err != nil {
		return nil, err
	}
	started := time.Now()
	world, err := benchWorld(question.File)
	if err != nil {
		return nil, err
	}
	answer := struct {
		DecodeNanos int64   `json:"decodeNanos"`
		Fits        int     `json:"fits"`
		Errors      int     `json:"errors"`
		Nanos       []int64 `json:"nanos"`
		ThreadNanos []int64 `json:"threadNanos"`
	}{DecodeNanos: time.Since(started).Nanoseconds()}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range max(question.Rounds, 1) {
		runtime.GC()
		answer.Fits, answer.Errors = 0, 0
		start, used := time.Now(), threadTime()
		allocator, err := newAllocator(*world)
		if err != nil {
			return nil, err
		}
		for _, name := range question.Nodes {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
			results, err := allocator.Allocate(context.Background(), node, question.Claims)
			switch {
			case err != nil:
				answer.Errors++
			case results != nil:
				answer.Fits++
			}
		}
		answer.Nanos = append(answer.Nanos, time.Since(start).Nanoseconds())
		answer.ThreadNanos = append(answer.ThreadNanos, (threadTime() - used).Nanoseconds())
	}
	// Nothing may go on in the background while the caller measures its own side.
	runtime.GC()
	return answer, nil
}
