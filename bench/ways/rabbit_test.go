package ways

import "testing"

func TestRabbitWays(t *testing.T) { onServers(t, rabbitWays()) }
