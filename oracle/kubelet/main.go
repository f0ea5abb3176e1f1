// The kubelet's end of the DRA and registration sockets, with grpc-go, the kubelet's own client code (k8s.io/kubelet) and
// its way of dialling, behind JSON lines: a question a line, an answer a line.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"
	healthv1alpha1 "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
	drav1beta1 "k8s.io/kubelet/pkg/apis/dra/v1beta1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

type claim struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

type question struct {
	Op         string  `json:"op"`
	Socket     string  `json:"socket"`
	Version    string  `json:"version"` // v1 or v1beta1; of health v1 or v1alpha1
	Claims     []claim `json:"claims"`
	Registered bool    `json:"registered"`
	Error      string  `json:"error"`
	Count      int     `json:"count"`
	PauseMs    int     `json:"pause_ms"` // between two rounds
}

// register is how the plugin manager dials: the bare path and a dialer of its own, so that :authority becomes the path,
// percent-encoded.
func register(socket string) (registration.RegistrationClient, *grpc.ClientConn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	dialer := func(ctx context.Context, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", address)
	}
	//nolint:staticcheck // the kubelet uses DialContext and WithBlock
	conn, err := grpc.DialContext(ctx, socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithBlock(), grpc.WithContextDialer(dialer))
	if err != nil {
		return nil, nil, err
	}
	return registration.NewRegistrationClient(conn), conn, nil
}

func getInfo(q question) (any, error) {
	client, conn, err := register(q.Socket)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	info, err := client.GetInfo(ctx, &registration.InfoRequest{})
	if err != nil {
		return nil, err
	}
	return map[string]any{"type": info.Type, "name": info.Name, "endpoint": info.Endpoint,
		"versions": info.SupportedVersions, "authority": conn.CanonicalTarget()}, nil
}

func notify(q question) (any, error) {
	client, conn, err := register(q.Socket)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	status := &registration.RegistrationStatus{PluginRegistered: q.Registered, Error: q.Error}
	_, err = client.NotifyRegistrationStatus(ctx, status)
	return nil, err
}

// service is how the DRA manager dials: a unix: target, so that :authority is localhost.
func service(socket string) (*grpc.ClientConn, context.Context, context.CancelFunc, error) {
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	ctx, cancel := context.WithTimeout(context.Background(), 45*time.Second)
	return conn, ctx, cancel, err
}

func prepare(q question) (any, error) {
	conn, ctx, cancel, err := service(q.Socket)
	if err != nil {
		return nil, err
	}
	defer cancel()
	defer conn.Close()
	if q.Version == "v1beta1" {
		request := &drav1beta1.NodePrepareResourcesRequest{}
		for _, one := range q.Claims {
			request.Claims = append(request.Claims, &drav1beta1.Claim{Namespace: one.Namespace, Name: one.Name, Uid: one.UID})
		}
		response, err := drav1beta1.NewDRAPluginClient(conn).NodePrepareResources(ctx, request)
		if err != nil {
			return nil, err
		}
		return response.Claims, nil
	}
	request := &drav1.NodePrepareResourcesRequest{}
	for _, one := range q.Claims {
		request.Claims = append(request.Claims, &drav1.Claim{Namespace: one.Namespace, Name: one.Name, Uid: one.UID})
	}
	response, err := drav1.NewDRAPluginClient(conn).NodePrepareResources(ctx, request)
	if err != nil {
		return nil, err
	}
	return response.Claims, nil
}

func unprepare(q question) (any, error) {
	conn, ctx, cancel, err := service(q.Socket)
	if err != nil {
		return nil, err
	}
	defer cancel()
	defer conn.Close()
	if q.Version == "v1beta1" {
		request := &drav1beta1.NodeUnprepareResourcesRequest{}
		for _, one := range q.Claims {
			request.Claims = append(request.Claims, &drav1beta1.Claim{Namespace: one.Namespace, Name: one.Name, Uid: one.UID})
		}
		response, err := drav1beta1.NewDRAPluginClient(conn).NodeUnprepareResources(ctx, request)
		if err != nil {
			return nil, err
		}
		return response.Claims, nil
	}
	request := &drav1.NodeUnprepareResourcesRequest{}
	for _, one := range q.Claims {
		request.Claims = append(request.Claims, &drav1.Claim{Namespace: one.Namespace, Name: one.Name, Uid: one.UID})
	}
	response, err := drav1.NewDRAPluginClient(conn).NodeUnprepareResources(ctx, request)
	if err != nil {
		return nil, err
	}
	return response.Claims, nil
}

// watch gives the first `count` answers of the health stream.
func watch(q question) (any, error) {
	conn, ctx, cancel, err := service(q.Socket)
	if err != nil {
		return nil, err
	}
	defer cancel()
	defer conn.Close()
	var answers []any
	if q.Version == "v1alpha1" {
		stream, err := healthv1alpha1.NewDRAResourceHealthClient(conn).NodeWatchResources(ctx, &healthv1alpha1.NodeWatchResourcesRequest{})
		for err == nil && len(answers) < q.Count {
			var response *healthv1alpha1.NodeWatchResourcesResponse
			if response, err = stream.Recv(); err == nil {
				answers = append(answers, response.Devices)
			}
		}
		return answers, err
	}
	stream, err := healthv1.NewDRAResourceHealthClient(conn).NodeWatchResources(ctx, &healthv1.NodeWatchResourcesRequest{})
	for err == nil && len(answers) < q.Count {
		var response *healthv1.NodeWatchResourcesResponse
		if response, err = stream.Recv(); err == nil {
			answers = append(answers, response.Devices)
		}
	}
	return answers, err
}

// rounds prepares and unprepares the claims again and again over one connection, as the kubelet keeps one, and tells what
// the kubelet would wait, in microseconds.
func rounds(q question) (any, error) {
	conn, err := grpc.NewClient("unix:"+q.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	client := drav1.NewDRAPluginClient(conn)
	var claims []*drav1.Claim
	for _, one := range q.Claims {
		claims = append(claims, &drav1.Claim{Namespace: one.Namespace, Name: one.Name, Uid: one.UID})
	}
	var prepares, unprepares []float64
	ctx := context.Background()
	for range q.Count {
		time.Sleep(time.Duration(q.PauseMs) * time.Millisecond)
		begin := time.Now()
		response, err := client.NodePrepareResources(ctx, &drav1.NodePrepareResourcesRequest{Claims: claims})
		if err != nil {
			return nil, err
		}
		prepares = append(prepares, float64(time.Since(begin).Nanoseconds())/1000)
		for uid, one := range response.Claims {
			if one.Error != "" {
				return nil, fmt.Errorf("claim %s: %s", uid, one.Error)
			}
		}
		begin = time.Now()
		if _, err := client.NodeUnprepareResources(ctx, &drav1.NodeUnprepareResourcesRequest{Claims: claims}); err != nil {
			return nil, err
		}
		unprepares = append(unprepares, float64(time.Since(begin).Nanoseconds())/1000)
	}
	return map[string]any{"prepare": spread(prepares), "unprepare": spread(unprepares)}, nil
}

func spread(took []float64) map[string]float64 {
	slices.Sort(took)
	at := func(share float64) float64 { return took[int(share*float64(len(took)-1))] }
	return map[string]float64{"p50": at(0.5), "p99": at(0.99), "max": at(1)}
}

var operations = map[string]func(question) (any, error){
	"info": getInfo, "notify": notify, "prepare": prepare, "unprepare": unprepare, "watch": watch, "rounds": rounds,
}

func main() {
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
		} else if operation, known := operations[q.Op]; !known {
			reply["error"] = fmt.Sprintf("unknown op %q", q.Op)
		} else if answer, err := operation(q); err != nil {
			reply["error"] = err.Error()
		} else {
			reply["answer"] = answer
		}
		if out.Encode(reply) != nil {
			return
		}
	}
}
