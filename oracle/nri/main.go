// The runtime's end of NRI as containerd has it: the real adaptation (github.com/containerd/nri), behind JSON lines.
// A question a line, an answer a line. The wire, the timeouts and the reactions to a bad plugin are the real ones.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
	nrilog "github.com/containerd/nri/pkg/log"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

type question struct {
	Op        string `json:"op"`
	Socket    string `json:"socket"`
	Name      string `json:"name"`
	Version   string `json:"version"`
	TimeoutMs int    `json:"timeout_ms"`
	Pods      int    `json:"pods"`
	Padding   int    `json:"padding"` // bytes in an annotation of each pod
	Text      string `json:"text"`
	Count     int    `json:"count"`
	UID       string `json:"uid"`
	Message   int    `json:"message"` // bytes of the whole ttrpc message that CreateContainer shall be
	// The pod and container, where the driver at the other end knows them; names made from the UID otherwise.
	Namespace string   `json:"namespace"`
	Pod       string   `json:"pod"`
	Container string   `json:"container"`
	CDI       []string `json:"cdi"`
	Env       []string `json:"env"`
	Live      []string `json:"live"` // UIDs of pods that run already when the runtime starts
}

// journal keeps what the adaptation logs: the only way to see which plugins it took in and why it dropped one.
type journal struct {
	sync.Mutex
	lines []string
	more  chan struct{}
}

func (j *journal) add(format string, args ...any) {
	j.Lock()
	defer j.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
	close(j.more)
	j.more = make(chan struct{})
}

func (j *journal) Debugf(_ context.Context, format string, args ...any) { j.add(format, args...) }
func (j *journal) Infof(_ context.Context, format string, args ...any)  { j.add(format, args...) }
func (j *journal) Warnf(_ context.Context, format string, args ...any)  { j.add(format, args...) }
func (j *journal) Errorf(_ context.Context, format string, args ...any) { j.add(format, args...) }

// await waits until `count` lines hold `text`, and gives them.
func (j *journal) await(text string, count int) ([]string, error) {
	limit := time.After(40 * time.Second)
	for {
		j.Lock()
		var found []string
		for _, line := range j.lines {
			if strings.Contains(line, text) {
				found = append(found, line)
			}
		}
		more, all := j.more, strings.Join(j.lines, "\n")
		j.Unlock()
		if len(found) >= count {
			return found, nil
		}
		select {
		case <-more:
		case <-limit:
			return nil, fmt.Errorf("waited in vain for %q; the log says:\n%s", text, all)
		}
	}
}

type runtime struct {
	log     *journal
	nri     *adaptation.Adaptation
	updates [][]*api.ContainerUpdate // of each Synchronize that had any, and each time a plugin wanted some
	lock    sync.Mutex
}

func (r *runtime) start(q question) error {
	if q.TimeoutMs > 0 {
		adaptation.SetPluginRequestTimeout(time.Duration(q.TimeoutMs) * time.Millisecond)
	}
	pods, containers := world(q.Pods, q.Padding)
	for _, uid := range q.Live {
		running := pod(question{UID: uid})
		pods = append(pods, running)
		containers = append(containers, &api.Container{
			Id: "container-" + uid, PodSandboxId: running.Id, Name: "main", State: api.ContainerState_CONTAINER_RUNNING,
		})
	}
	note := func(updates []*api.ContainerUpdate) {
		if len(updates) == 0 { // as in v0.12's first synchronization, with the plugins it starts itself: none here
			return
		}
		r.lock.Lock()
		defer r.lock.Unlock()
		r.updates = append(r.updates, updates)
	}
	sync := func(ctx context.Context, synchronize adaptation.SyncCB) error {
		updates, err := synchronize(ctx, pods, containers)
		if err == nil {
			note(updates)
		}
		return err
	}
	update := func(_ context.Context, updates []*api.ContainerUpdate) ([]*api.ContainerUpdate, error) {
		note(updates)
		return updates[:len(updates)/2], nil // half of them fail
	}
	var err error
	r.nri, err = adaptation.New(q.Name, q.Version, sync, update, adaptation.WithSocketPath(q.Socket),
		adaptation.WithPluginPath("/nonexistent"), adaptation.WithPluginConfigPath("/nonexistent"))
	if err != nil {
		return err
	}
	return r.nri.Start()
}

func world(count, padding int) (pods []*api.PodSandbox, containers []*api.Container) {
	pad := strings.Repeat("x", padding)
	for i := range count {
		id := fmt.Sprintf("pod-%d", i)
		pods = append(pods, &api.PodSandbox{
			Id: id, Name: id, Namespace: "default", Uid: fmt.Sprintf("uid-%d", i),
			Annotations: map[string]string{"padding": pad},
			Linux:       &api.LinuxPodSandbox{Namespaces: []*api.LinuxNamespace{{Type: "network", Path: "/run/netns/" + id}}},
		})
		containers = append(containers, &api.Container{
			Id: "container-" + id, PodSandboxId: id, Name: "main", State: api.ContainerState_CONTAINER_RUNNING,
		})
	}
	return pods, containers
}

func pod(q question) *api.PodSandbox {
	uid := q.UID
	return &api.PodSandbox{
		Id: "sandbox-" + uid, Name: cmp.Or(q.Pod, "pod-"+uid), Namespace: cmp.Or(q.Namespace, "default"), Uid: uid,
		RuntimeHandler: "runc",
		Linux:          &api.LinuxPodSandbox{Namespaces: []*api.LinuxNamespace{{Type: "network", Path: "/run/netns/" + uid}}},
	}
}

// createRequest is a CreateContainer whose ttrpc message, header included, is as long as asked, 0 for as it comes.
func createRequest(q question) (*api.CreateContainerRequest, error) {
	uid, message := q.UID, q.Message
	request := &api.CreateContainerRequest{
		Pod: pod(q),
		Container: &api.Container{
			Id: "container-" + uid, PodSandboxId: "sandbox-" + uid, Name: cmp.Or(q.Container, "main"),
			Env:   append([]string{""}, q.Env...),
			Linux: &api.LinuxContainer{Devices: []*api.LinuxDevice{{Path: "/dev/null", Type: "c", Major: 1, Minor: 3}}},
		},
	}
	nameCDI(request.Container, q.CDI)
	for padding := 0; message > 0; {
		size := messageSize(proto.Size(request))
		if size == message {
			break
		}
		if padding += message - size; padding < 0 || padding > message {
			return nil, fmt.Errorf("no message of %d bytes can be made", message)
		}
		request.Container.Env[0] = strings.Repeat("x", padding)
	}
	return request, nil
}

// messageSize is the header, service, method, payload and a timeout of five bytes (0.3 to 34 s in nanoseconds).
func messageSize(payload int) int {
	field := func(size int) int { return 1 + len(varint(size)) + size }
	return 10 + field(len("nri.pkg.api.v1alpha1.Plugin")) + field(len("CreateContainer")) + field(payload) + 1 + 5
}

func varint(value int) []byte {
	var out []byte
	for ; value >= 0x80; value >>= 7 {
		out = append(out, byte(value)|0x80)
	}
	return append(out, byte(value))
}

func (r *runtime) create(q question) (any, error) {
	request, err := createRequest(q)
	if err != nil {
		return nil, err
	}
	response, err := r.nri.CreateContainer(context.Background(), request)
	if err != nil {
		return nil, err
	}
	text, err := protojson.Marshal(response)
	return json.RawMessage(text), err
}

// latency is what the real runtime waits for one CreateContainer, in microseconds.
func (r *runtime) latency(q question) (any, error) {
	request, err := createRequest(q)
	if err != nil {
		return nil, err
	}
	took := make([]float64, q.Count)
	for i := range took {
		begin := time.Now()
		if _, err := r.nri.CreateContainer(context.Background(), request); err != nil {
			return nil, err
		}
		took[i] = float64(time.Since(begin).Nanoseconds()) / 1000
	}
	slices.Sort(took)
	at := func(share float64) float64 { return took[int(share*float64(len(took)-1))] }
	return map[string]float64{"p50": at(0.5), "p99": at(0.99), "max": at(1)}, nil
}

func (r *runtime) answer(q question) (any, error) {
	ctx := context.Background()
	switch q.Op {
	case "start":
		return nil, r.start(q)
	case "stop":
		r.nri.Stop()
		return nil, nil
	case "await-log":
		return r.log.await(q.Text, q.Count)
	case "updates":
		r.lock.Lock()
		defer r.lock.Unlock()
		return r.updates, nil
	case "run-pod":
		return nil, runPod(ctx, r.nri, pod(q))
	case "stop-pod":
		return nil, stopPod(ctx, r.nri, pod(q))
	case "remove-pod":
		return nil, removePod(ctx, r.nri, pod(q))
	case "create":
		return r.create(q)
	case "latency":
		return r.latency(q)
	}
	return nil, fmt.Errorf("unknown op %q", q.Op)
}

func main() {
	r := &runtime{log: &journal{more: make(chan struct{})}}
	nrilog.Set(r.log)
	lines := bufio.NewReader(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var q question
		reply := map[string]any{}
		if err := json.Unmarshal(line, &q); err != nil {
			reply["error"] = err.Error()
		} else if answer, err := r.answer(q); err != nil {
			reply["error"] = err.Error()
		} else {
			reply["answer"] = answer
		}
		if out.Encode(reply) != nil {
			return
		}
	}
}
