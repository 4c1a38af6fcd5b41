package wire_test

import (
	"slices"
	"testing"
)

// check is something that must hold on every Redis.
type check struct {
	name string
	test func(w *world)
}

func suite() []check {
	return slices.Concat(armChecks, claimChecks, settleChecks, adoptChecks, changeChecks, nodeChecks, readChecks, hitChecks, guardChecks,
		windowChecks, bareChecks, itemChecks, defineChecks)
}

// TestBubble runs all checks on the embedded Redis, in fake time.
func TestBubble(t *testing.T) {
	for _, c := range suite() {
		t.Run(c.name, func(t *testing.T) { bubble(t, false, c.test) })
	}
}

// TestRedis runs all checks on real redis-server processes.
func TestRedis(t *testing.T) {
	for _, c := range suite() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			onRedis(t, c.test)
		})
	}
}

// repeats are checks for which a second call means something else: one more
// beat, another round of ZSCAN, or a change of their own between two calls.
var repeats = map[string]bool{
	"node: one that is late itself judges nobody":                           true,
	"node: thousands of leases are reaped in rounds":                        true,
	"page: a change between any two commands leaves none out":               true,
	"guard: a look that is made again does not take back what fired before": true,
}

// TestEveryScriptTwice runs all checks with every script executed twice in a
// row, as a connection does that retries by itself after a lost reply.
func TestEveryScriptTwice(t *testing.T) {
	for _, c := range suite() {
		if repeats[c.name] {
			continue
		}
		t.Run(c.name, func(t *testing.T) { bubble(t, true, c.test) })
	}
}
