// Gpudriver publishes PCI stand-ins as the GPUs of a vendor's DRA driver and prepares claims for them.
//
// What a container gets is one environment variable per device, LAB_GPU_<name>=<bus id>, through CDI: enough for a
// test to see which GPU it was given. No device node is handed over, because there is no GPU.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/klog/v2"
)

type driver struct {
	name   string
	cdiDir string
	busIDs map[string]string
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig file")
	node := flag.String("node-name", "", "name of this node")
	profilePath := flag.String("profile", "", "what to publish: a JSON file of src/fishplate/sim/data/gpu_drivers")
	sys := flag.String("sys", "/sys", "where sysfs is")
	cdiDir := flag.String("cdi-dir", "/var/run/cdi", "where CDI specs go")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *node, *profilePath, *sys, *cdiDir); err != nil {
		fmt.Fprintln(os.Stderr, "gpudriver:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, node, profilePath, sys, cdiDir string) error {
	p, err := readProfile(profilePath)
	if err != nil {
		return err
	}
	functions, err := findStandIns(sys, node)
	if err != nil {
		return err
	}
	d := &driver{name: p.Driver, cdiDir: cdiDir, busIDs: map[string]string{}}
	var devices []resourceapi.Device
	for _, f := range functions {
		device, err := p.device(f)
		if err != nil {
			return err
		}
		d.busIDs[device.Name] = f.busID
		devices = append(devices, device)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	// The kubelet looks for the service socket in a directory that the plugin has to make.
	if err := os.MkdirAll(filepath.Join(kubeletplugin.KubeletPluginsDir, p.Driver), 0o750); err != nil {
		return err
	}
	helper, err := kubeletplugin.Start(ctx, d, kubeletplugin.DriverName(p.Driver), kubeletplugin.NodeName(node),
		kubeletplugin.KubeClient(client))
	if err != nil {
		return err
	}
	defer helper.Stop()
	// Pool name = node name, as both vendors' drivers have it.
	pools := map[string]resourceslice.Pool{node: {Slices: []resourceslice.Slice{{Devices: devices}}}}
	if err := helper.PublishResources(ctx, resourceslice.DriverResources{Pools: pools}); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("publishing", "driver", p.Driver, "devices", len(devices))
	<-ctx.Done()
	return nil
}

func (d *driver) HandleError(ctx context.Context, err error, msg string) {
	klog.FromContext(ctx).Error(err, msg)
}

func (d *driver) PrepareResourceClaims(ctx context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		devices, err := d.prepare(claim)
		results[claim.UID] = kubeletplugin.PrepareResult{Devices: devices, Err: err}
	}
	return results, nil
}

func (d *driver) prepare(claim *resourceapi.ResourceClaim) ([]kubeletplugin.Device, error) {
	var prepared []kubeletplugin.Device
	var specs []map[string]any
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != d.name {
			continue
		}
		busID, known := d.busIDs[result.Device]
		if !known {
			return nil, fmt.Errorf("no device is called %s", result.Device)
		}
		name := string(claim.UID) + "-" + result.Device
		variable := "LAB_GPU_" + strings.NewReplacer("-", "_", ".", "_").Replace(result.Device)
		specs = append(specs, map[string]any{
			"name": name, "containerEdits": map[string]any{"env": []string{variable + "=" + busID}},
		})
		prepared = append(prepared, kubeletplugin.Device{
			Requests: []string{result.Request}, PoolName: result.Pool, DeviceName: result.Device,
			CDIDeviceIDs: []string{d.name + "/gpu=" + name},
		})
	}
	spec := map[string]any{"cdiVersion": "0.6.0", "kind": d.name + "/gpu", "devices": specs}
	return prepared, d.writeSpec(claim.UID, spec)
}

func (d *driver) specPath(uid types.UID) string {
	return filepath.Join(d.cdiDir, d.name+"-gpu_"+string(uid)+".json")
}

// The runtime may scan the directory at any time, so a spec appears complete or not at all.
func (d *driver) writeSpec(uid types.UID, spec map[string]any) error {
	data, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(d.cdiDir, 0o755); err != nil {
		return err
	}
	path := d.specPath(uid)
	if err := os.WriteFile(path+".new", data, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func (d *driver) UnprepareResourceClaims(ctx context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	results := map[types.UID]error{}
	for _, claim := range claims {
		err := os.Remove(d.specPath(claim.UID))
		if os.IsNotExist(err) {
			err = nil
		}
		results[claim.UID] = err
	}
	return results, nil
}
