//go:build k136

package main

import "k8s.io/dynamic-resource-allocation/structured"

var nodeOnly = structured.ErrFailedAllocationOnNode

func allocatorFeatures(gates map[string]bool) structured.Features {
	return structured.Features{
		AdminAccess:            gates["DRAAdminAccess"],
		PrioritizedList:        gates["DRAPrioritizedList"],
		PartitionableDevices:   gates["DRAPartitionableDevices"],
		DeviceTaints:           gates["DRADeviceTaints"],
		DeviceBindingAndStatus: gates["DRADeviceBindingConditions"] && gates["DRAResourceClaimDeviceStatus"],
		ConsumableCapacity:     gates["DRAConsumableCapacity"],
		ListTypeAttributes:     gates["DRAListTypeAttributes"],
	}
}
