package faults

import (
	"errors"
	"math/rand/v2"
	"time"
)

// daemonFaults are what happens to daemons, whatever the Redis.
func daemonFaults() []fault {
	return []fault{
		{at: theDaemon, name: "daemon killed", apply: killDaemon},
		{at: theDaemon, name: "all daemons killed", apply: killAllDaemons},
		{at: theDaemon, name: "daemon stopped", apply: stopDaemon},
		{at: theDaemon, name: "daemon frozen", apply: freezeDaemon},
		{at: theDaemon, name: "daemon frozen beyond its lease", apply: freezeDaemon, long: true},
	}
}

func killDaemon(h *harness, rng *rand.Rand, _ time.Duration) (func() error, error) {
	place := rng.IntN(len(h.fleet.places))
	h.fleet.kill(place)
	return func() error { return h.fleet.launch(place) }, nil
}

func killAllDaemons(h *harness, _ *rand.Rand, _ time.Duration) (func() error, error) {
	for _, place := range h.fleet.running() {
		h.fleet.kill(place)
	}
	return func() error {
		var errs []error
		for place := range h.fleet.places {
			errs = append(errs, h.fleet.launch(place))
		}
		return errors.Join(errs...)
	}, nil
}

func stopDaemon(h *harness, rng *rand.Rand, _ time.Duration) (func() error, error) {
	place := rng.IntN(len(h.fleet.places))
	err := h.fleet.term(place)
	return func() error { return h.fleet.launch(place) }, err
}

// freezeDaemon is what a virtual machine that is moved does to a daemon, or a
// laptop that sleeps: it goes on as if nothing had been, with handlers whose runs
// are others' now.
func freezeDaemon(h *harness, rng *rand.Rand, _ time.Duration) (func() error, error) {
	place := rng.IntN(len(h.fleet.places))
	h.fleet.freeze(place)
	return func() error {
		h.fleet.thaw(place)
		return nil
	}, nil
}
