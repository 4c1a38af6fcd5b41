package ways

import "testing"

func TestRiverWays(t *testing.T) { onServers(t, riverWays()) }
