//go:build k134 || k135

package main

import dracel "k8s.io/dynamic-resource-allocation/cel"

// features turns gates into what this minor version knows of them; DRAConsumableCapacity is alpha here.
func features(gates map[string]bool) dracel.Features {
	return dracel.Features{EnableConsumableCapacity: gates["DRAConsumableCapacity"]}
}
