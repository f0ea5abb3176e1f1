//go:build nri06

package main

import (
	"context"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
)

func runPod(ctx context.Context, r *adaptation.Adaptation, pod *api.PodSandbox) error {
	return r.RunPodSandbox(ctx, &api.StateChangeEvent{Pod: pod})
}

func stopPod(ctx context.Context, r *adaptation.Adaptation, pod *api.PodSandbox) error {
	return r.StopPodSandbox(ctx, &api.StateChangeEvent{Pod: pod})
}

func removePod(ctx context.Context, r *adaptation.Adaptation, pod *api.PodSandbox) error {
	return r.RemovePodSandbox(ctx, &api.StateChangeEvent{Pod: pod})
}

// nameCDI does nothing: before v0.10 a runtime did not show what the kubelet gave the container.
func nameCDI(*api.Container, []string) {}
