package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// QEMU's teaching device: it does nothing a GPU does, but it sits on the bus where one would.
const standIn = "0x1234:0x11e8"

type function struct {
	index    int
	busID    string
	root     string
	uuid     string
	numaNode int64
}

func word(path string) string {
	data, _ := os.ReadFile(path)
	return strings.TrimSpace(string(data))
}

// The driver numbers GPUs in bus order, as the vendors' drivers do.
func findStandIns(sys, node string) ([]function, error) {
	directories, err := filepath.Glob(filepath.Join(sys, "bus/pci/devices/*"))
	if err != nil {
		return nil, err
	}
	sort.Strings(directories)
	var found []function
	for _, d := range directories {
		if word(filepath.Join(d, "vendor"))+":"+word(filepath.Join(d, "device")) != standIn {
			continue
		}
		target, err := filepath.EvalSymlinks(d)
		if err != nil {
			return nil, err
		}
		numa, err := strconv.ParseInt(word(filepath.Join(d, "numa_node")), 10, 64)
		if err != nil {
			numa = -1
		}
		busID := filepath.Base(d)
		found = append(found, function{
			index: len(found), busID: busID, root: rootOf(target), uuid: uuidOf(node, busID), numaNode: numa,
		})
	}
	return found, nil
}

func rootOf(target string) string {
	for _, part := range strings.Split(target, "/") {
		if strings.HasPrefix(part, "pci") && strings.Contains(part, ":") {
			return part
		}
	}
	return ""
}

// A UUID must survive restarts of the driver and differ between nodes.
func uuidOf(node, busID string) string {
	h := sha256.Sum256([]byte(node + "/" + busID))
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
}
