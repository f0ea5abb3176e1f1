//go:build k134

package main

import "k8s.io/dynamic-resource-allocation/structured"

var nodeOnly error

func allocatorFeatures(gates map[string]bool) structured.Features {
	return structured.Features{
		AdminAccess:          gates["DRAAdminAccess"],
		PrioritizedList:      gates["DRAPrioritizedList"],
		PartitionableDevices: gates["DRAPartitionableDevices"],
		DeviceTaints:         gates["DRADeviceTaints"],
		DeviceBinding:        gates["DRADeviceBindingConditions"],
		DeviceStatus:         gates["DRAResourceClaimDeviceStatus"],
		ConsumableCapacity:   gates["DRAConsumableCapacity"],
	}
}
