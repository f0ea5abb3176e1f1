//go:build !k134 && !k135

package main

import dracel "k8s.io/dynamic-resource-allocation/cel"

// features turns gates into what this minor version knows of them; DRAConsumableCapacity is beta and on here.
func features(gates map[string]bool) dracel.Features {
	capacity, given := gates["DRAConsumableCapacity"]
	return dracel.Features{
		EnableConsumableCapacity: capacity || !given,
		EnableListTypeAttributes: gates["DRAListTypeAttributes"],
	}
}
