//go:build nri012

package main

import (
	"context"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
)

func runPod(ctx context.Context, r *adaptation.Adaptation, pod *api.PodSandbox) error {
	return r.RunPodSandbox(ctx, &api.RunPodSandboxRequest{Pod: pod})
}

func stopPod(ctx context.Context, r *adaptation.Adaptation, pod *api.PodSandbox) error {
	return r.StopPodSandbox(ctx, &api.StopPodSandboxRequest{Pod: pod})
}

func removePod(ctx context.Context, r *adaptation.Adaptation, pod *api.PodSandbox) error {
	return r.RemovePodSandbox(ctx, &api.RemovePodSandboxRequest{Pod: pod})
}

// nameCDI tells which CDI devices the kubelet gave the container; a runtime shows them since v0.10.
func nameCDI(container *api.Container, ids []string) {
	for _, id := range ids {
		container.CDIDevices = append(container.CDIDevices, &api.CDIDevice{Name: id})
	}
}
